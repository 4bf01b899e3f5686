"""Runs attacks on ESR with and without defences, beside a run from which the hostile stay away: a table in Markdown."""

import json
import subprocess
import sys
import tempfile

DEFENCES = {
    "device_limit": 100,
    "embedding_limit": 15,
    "group_limit": 30,
    "reversal": 3.5,
    "scores": 6,
    "quarantine": 5,
}
KINDS = {
    "attack.devices=0.1": ["scale", "sign-flip", "not-a-number", "huge", "noise", "label-flip", "backdoor"],
    "attack.hospitals=2": ["scale", "sign-flip", "reverse", "not-a-number", "huge", "noise", "label-flip", "metrics"],
}
WHO = {"attack.devices=0.1": "a tenth of the devices", "attack.hospitals=2": "two hospitals of ten"}


def train(selvedge, iterations, settings):
    """The summary of a run; none where it diverges."""
    with tempfile.TemporaryDirectory() as folder:
        command = [selvedge, "train", "esr", "--json", "--out", f"{folder}/run"]
        common = [f"train.iterations={iterations}", f"train.evaluate_every={iterations // 10}"]
        for setting in common + settings:
            command += ["--set", setting]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            return None
        result = json.loads(ran.stdout)
        # Measured by an honest party: whose reports are wrong, what a run says of itself is wrong.
        again = subprocess.run([selvedge, "evaluate", f"{folder}/run", "--json", "--last", "--uncalibrated"],
                               capture_output=True, text=True, check=True)
        result["auc"] = json.loads(again.stdout)["test"]["auc"]
        return result


def shown(result):
    """Test AUC, and how often a backdoor works."""
    if result is None:
        return "diverged"
    text = f"{result['auc']:.3f}"
    if result.get("backdoor"):
        marked, unmarked = (100 * share for share in result["backdoor"])
        text += f"; the mark works for {marked:.0f} % ({unmarked:.0f} % without it)"
    return text


def honest_runs(selvedge, iterations, defences):
    """What defences cost where nobody is hostile: twenty seeds."""
    most, sum_of, quarantined = 0.0, 0.0, 0
    for seed in range(101, 121):
        plain, defended = (train(selvedge, iterations, [f"seed={seed}"] + more) for more in ([], defences))
        difference = defended["auc"] - plain["auc"]
        most, sum_of = max(most, abs(difference)), sum_of + difference
        quarantined += defended["quarantined"]
    print(f"20 honest runs: test AUC differs by at most {most:.4f}, on average by {sum_of / 20:+.4f}; "
          f"{quarantined} parties in quarantine")


def main():
    selvedge, iterations = sys.argv[1], int(sys.argv[2])
    defences = [f"defence.{key}={value}" for key, value in DEFENCES.items()]
    if sys.argv[3:] == ["honest"]:
        return honest_runs(selvedge, iterations, defences)
    honest = [train(selvedge, iterations, settings) for settings in ([], defences)]
    print(f"Test AUC after {iterations:,} iterations:\n")
    print("| who is hostile | what they do | no defence | defences | the hostile stay away |")
    print("| --- | --- | --- | --- | --- |")
    print(f"| nobody | | {shown(honest[0])} | {shown(honest[1])} | |", flush=True)
    for who, kinds in KINDS.items():
        away = shown(train(selvedge, iterations, [who, "attack.kind=absent"]))
        for kind in kinds:
            hostile = [who, f"attack.kind={kind}"]
            open_, defended = (shown(train(selvedge, iterations, hostile + more)) for more in ([], defences))
            print(f"| {WHO[who]} | `{kind}` | {open_} | {defended} | {away} |", flush=True)


main()
