"""Reads one run of the conformance suite: conformance.py SIDE REVISION EXIT_CODE OUTPUT DOCUMENT.

The suite itself ends with an error when a required scenario fails.
What it does not score must be as the document lists it, in rows `| scenario | side | reason |`."""
import re
import sys

side, revision, ended, output, document = sys.argv[1:]
text = open(output, encoding="utf-8").read()
_, found, summary = text.partition("SUMMARY ===")
if not found:
    print(f"{side} {revision}: the suite did not end\n{text[-2000:]}")
    sys.exit(1)
scored, _, unscored = summary.partition("Not scored for")
passed = re.findall(r"^✓ (\S+):", scored, re.M)
failed = re.findall(r"^✗ (\S+):", scored, re.M)
free = set(re.findall(r"^\s+✗ (\S+) \(", unscored, re.M))
required = [name for name in failed if name not in free]
checks = re.search(r"^Total: (.*)$", scored, re.M)
rows = re.findall(r"^\| `([^`]+)` \| (server|client) \| [^|]+ \|$", open(document, encoding="utf-8").read(), re.M)
listed = {name for name, of in rows if of == side}
ran = set(passed) | set(failed)
print(f"{side} {revision}: {len(passed)} scenarios passed, {len(required)} required failed, {len(free)} unscored failed; "
      f"checks: {checks.group(1) if checks else 'none'}")
wrong = [f"failed, and is required: {name}" for name in required]
wrong += [f"failed, and {document} does not say why: {name}" for name in sorted(free - listed)]
wrong += [f"passed, and {document} says that it fails: {name}" for name in sorted((listed & ran) - free)]
if ended != "0" and not required:
    wrong.append(f"the suite ended with {ended}")
for line in wrong:
    print(f"  {line}")
sys.exit(1 if wrong or not passed else 0)
