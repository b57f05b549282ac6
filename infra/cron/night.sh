#!/bin/sh
# The nights that are not explained yet, for cron: one process at a time, tried again where that may help, and a mail where somebody has to know.
set -u
: "${LEAFLEDGER:=/opt/leafledger/bin/leafledger}" # the program
: "${NIGHTS:=/etc/leafledger/nights.toml}"        # its options, see leafledger config
: "${STATE:=/var/lib/leafledger}"                 # where the lock and the log of the last attempt are
: "${MAILTO:=root}"                               # who is told; cron hands on what the crontab says
: "${TRIES:=4}" "${PAUSE:=1800}"                  # how often, and seconds in between

tell() { # SUBJECT; the text is read from standard input
    mail -s "leafledger: $1" "$MAILTO"
}

# The lock is held by whoever has the file open, also by what this script started, should it be killed: it goes when the last of them ends.
exec 9> "$STATE/night.lock" || exit 1
if ! flock --nonblock 9; then
    echo "The night before is still at work; this one was not begun. It is made up for by the next." | tell "still at work"
    exit 75
fi

# From a week ago to yesterday: nights that are finished are passed over, and those that the machine slept through are made up for.
export LEAFLEDGER_EXPLAIN_QUIET=false # whatever the file says: the lines of nights are what is mailed
first=$(date -d '7 days ago' +%F)
said=$(mktemp) && drifted=$(mktemp) && trap 'rm -f "$said" "$drifted"' EXIT || exit 1
try=1
while :; do
    "$LEAFLEDGER" explain --config "$NIGHTS" --dates "$first..yesterday" > "$said" 2> "$STATE/night.log"
    code=$?
    case $code in
        6 | 9) [ "$try" -lt "$TRIES" ] || break ;; # data that have not come, or a store that is away: later, perhaps
        *) break ;;
    esac
    grep -E '; [0-9,]+ alarms? against ' "$said" >> "$drifted" # the next attempt passes over these nights, and says nothing of it
    try=$((try + 1))
    sleep "$PAUSE"
done

[ "$code" -ne 0 ] || [ ! -s "$drifted" ] || code=4
case $code in
    0) exit 0 ;; # nobody is told of a good night
    3) what="not in full" ;;
    4) what="drifted" ;;
    6) what="data have not come" && ! grep -q ': failed, exit code 8: ' "$said" || what="data have not come, and others are refused" ;;
    7) what="conflict with a run that is there" ;;
    8) what="data or model refused" ;;
    9) what="store or cluster away" ;;
    *) what="failed" ;;
esac
# What drifted in earlier attempts; of the last one a line for each night, and errors and warnings.
{ cat "$drifted" "$said"; grep '^leafledger: ' "$STATE/night.log"; } | tell "$what (exit code $code)"
exit "$code"
