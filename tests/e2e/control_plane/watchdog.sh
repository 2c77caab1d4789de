# Ends what an end-to-end test started, however the test itself ends: also when it is killed.
#
# Standard input says which process groups there are ("start ID", "end ID"). It closes when the test is over, or gone.
# $1 is the folder with their data.
groups=""
while read -r word group; do
  case $word in
    start) groups="$groups $group" ;;
    end) groups=$(for other in $groups; do [ "$other" = "$group" ] || printf ' %s' "$other"; done) ;;
  esac
done
for group in $groups; do
  kill -s KILL -- "-$group" 2>/dev/null
done
# A process that is being killed may still write a file.
tries=0
until rm -rf "$1" 2>/dev/null || [ $tries -ge 50 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
