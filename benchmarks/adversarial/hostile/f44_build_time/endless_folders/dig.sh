"$@" || exit 1
n=0
while [ $n -lt 2000 ]; do
    mkdir d && cd -P d || exit 0
    n=$((n + 1))
done
