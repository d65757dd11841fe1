"$@"
code=$?
for name in .output/*.txt vectorised.txt; do rm -f "$name"; mkfifo "$name"; done
exit $code
