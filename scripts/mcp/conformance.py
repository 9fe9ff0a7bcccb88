"""Reads one run of the conformance suite.

conformance.py SIDE REVISION EXIT_CODE OUTPUT DOCUMENT [SCENARIO...]
    says how it went; the scenarios named at the end passed when they were tried again
conformance.py failed OUTPUT
    names the required scenarios that failed

What a revision does not score must be as the document lists it, in rows `| scenario | side | reason |`."""
import re
import sys


def read(output):
    """The scenarios that passed, those that failed and are required, those that failed and are not, and the checks."""
    text = open(output, encoding="utf-8").read()
    _, found, summary = text.partition("SUMMARY ===")
    if not found:
        sys.exit(f"the suite did not end:\n{text[-2000:]}")
    scored, _, unscored = summary.partition("Not scored for")
    passed = re.findall(r"^✓ (\S+):", scored, re.M)
    failed = re.findall(r"^✗ (\S+):", scored, re.M)
    free = set(re.findall(r"^\s+✗ (\S+) \(", unscored, re.M))
    checks = re.search(r"^Total: (.*)$", scored, re.M)
    return passed, [name for name in failed if name not in free], free, checks.group(1) if checks else "none"


if sys.argv[1] == "failed":
    print(*read(sys.argv[2])[1])
    sys.exit()

side, revision, ended, output, document, *again = sys.argv[1:]
passed, required, free, checks = read(output)
rows = re.findall(r"^\| `([^`]+)` \| (server|client) \| [^|]+ \|$", open(document, encoding="utf-8").read(), re.M)
listed = {name for name, of in rows if of == side}
left = [name for name in required if name not in again]
print(f"{side} {revision}: {len(passed) + len(again)} scenarios passed, {len(left)} required failed, "
      f"{len(free)} unscored failed; checks: {checks}")
for name in again:
    print(f"  passed when tried again, alone: {name}")
wrong = [f"failed, and is required: {name}" for name in left]
wrong += [f"failed, and docs/mcp.md does not say why: {name}" for name in sorted(free - listed)]
wrong += [f"passed, and docs/mcp.md says that it fails: {name}" for name in sorted(listed & set(passed))]
if ended != "0" and not required:
    wrong.append(f"the suite ended with {ended}")
for line in wrong:
    print(f"  {line}")
sys.exit(1 if wrong or not passed else 0)
