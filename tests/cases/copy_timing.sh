#!/bin/sh
# VRAMTRACE_COPY_TIMING=1: copies are timed by events of the recorder, and nothing else changes. Times are those of the program's
# own events; captures come to a good end and nothing in them is timed; threads and contexts may go while copies are under way.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"
export CUSIM_LINK=10G

run() { # NAME
	"$programs/copy_timing" "$1" >"$1.bare" 2>"$1.bare-times"
	traced VRAMTRACE_COPY_TIMING=1 VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT="$1.vt" "$programs/copy_timing" "$1" >"$1.out" 2>"$1.times" ||
		fail "$1: exit status $?: $(cat "$1.out")"
	cmp "$1.bare" "$1.out"
	"$vramtrace" dump --json "$1.vt" >"$1.dump"
	"$vramtrace" transfers --json "$1.vt" >"$1.json"
}

for name in shapes threads contexts captures; do
	run $name
done
CUSIM_LINK=100M run crowd
python3 - <<'END'
import json
import sys

wrong = []


def check(right, what):
    if not right:
        wrong.append(what)


def read(name):
    records = [json.loads(line) for line in open(name + '.dump')]
    copies = [r for r in records if r['record'] == 'copy']
    times = {}
    for r in records:
        if r['record'] == 'copy_time' and r['gpu_time_ns']:
            check(r['timed_id'] not in times, f'{name}: timed twice')
            times[r['timed_id']] = r['gpu_time_ns']
    known = {c['timed_id'] for c in copies if c['timed_id']}
    check(set(times) <= known, f'{name}: times of no copy')
    check(all(not c['timed_id'] for c in copies if c['flags'] & 16), f'{name}: a captured copy is timed')
    return copies, times


# Each time by the program's events, in the order of the copies; of a batch that of its first copy.
copies, times = read('shapes')
calls = [c for c in copies if not c['flags'] & 2]
own = [line.split() for line in open('shapes.times')]
check(len(calls) == len(own) >= 20, f'shapes: {len(calls)} copies, {len(own)} times')
# The program's events enclose the recorder's: when the program is not let run between the two, its own time is the longer.
shorter = []
for copy, (what, ns) in zip(calls, own):
    seen = times.get(copy['timed_id'], 0)
    check(0 < seen / float(ns) < 1.05, f'shapes: {what}: {seen} ns, not {ns}')
    if seen / float(ns) <= 0.95:
        shorter.append(f'{what}: {seen} ns, not {ns}')
check(len(shorter) <= 2, f'shapes: {shorter}')
batch = [t for t in json.load(open('shapes.json'))['transfer_totals'] if t['direction'] == 'h2d']
check(sum(t['timed_bytes'] for t in batch) == sum(c['bytes'] for c in copies if c['direction'] == 1 or c['flags'] & 1 and
                                                  c['src'] != c['dst'] and c['direction'] == 0 and c['bytes'] == 1 << 19),
      'shapes: bytes of a batch are not those of its copies')

copies, times = read('threads')
large = [c for c in copies if c['bytes'] == 1 << 20]
check(len(large) == 320 and all(c['timed_id'] in times for c in large), f'threads: {len(times)} of 320 timed')
copies, times = read('contexts')
check(len(times) > 100, f'contexts: {len(times)} timed')
copies, times = read('captures')
check(sum(bool(c['flags'] & 16) for c in copies) == 600, 'captures: not all copies are there')
check(len(times) > 20, f'captures: {len(times)} timed')
copies, times = read('crowd')
check(100 < len(times) < 1000, f'crowd: {len(times)} of 1000 timed')
# Single times may be longer: the simulated stream runs dry when the program is not let run.
typical = sorted(times.values())[len(times) // 2]
check(600000 < typical < 720000, f'crowd: typically {typical} ns, not 657360')
for line in wrong:
    print('FAIL:', line)
sys.exit(bool(wrong))
END

# Not asked for: nothing is timed.
traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=off.vt "$programs/copy_timing" shapes >/dev/null 2>&1
"$vramtrace" dump --json off.vt >off.dump
if grep '"gpu_time_ns": [1-9]' off.dump; then fail 'timed without being asked to'; fi
