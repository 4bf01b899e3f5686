"""Looks at a dashboard in a real browser, as a person would who watches a training.

    python3 tools/python/check_dashboard.py BROWSER ADDRESS PICTURES CHECK…

ADDRESS is that of a dashboard that runs. Every CHECK is a name of a function below, with arguments behind colons. Leaves
screenshots in the folder PICTURES. Prints what it saw; exit code 1 if anything is wrong.
"""

import json
import os
import pathlib
import sys
import time

from browser import Browser

SIZES = {"wide": (1440, 900, False), "narrow": (390, 844, True)}
PATIENCE = 20.0  # seconds


def expect(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")
    print(f"ok  {what}")


def expect_true(found, what):
    expect(bool(found), True, what)


def is_quiet(page, address, what):
    """Nothing on the console, nothing asked of anybody but the dashboard."""
    expect(page.complaints, [], f"{what}: nothing on the console")
    origin = address.split("/?")[0].rstrip("/")
    expect([r for r in page.requests if not r.startswith((origin, "data:"))], [], f"{what}: nothing is loaded from elsewhere")
    expect(page.evaluate("typeof window.pwned"), "undefined", f"{what}: no name of a run becomes a script")


def fits(page, width, what):
    expect(page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"), width, f"{what}: no wider than the screen")


def wait(page, expression, what):
    """Like `wait_for`, without keeping the page busy."""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(f"Boolean({expression})"):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: did not happen ({expression})")
        time.sleep(0.05)
    print(f"ok  {what}")


def row(run):
    """The row of a run by its label, as an expression."""
    return f"[...document.querySelectorAll('#all-runs tbody tr')].find((r) => r.querySelector('th a').textContent === {json.dumps(run)})"


def cell(run, title):
    return f"{row(run)}?.querySelector('[data-title={json.dumps(title)}]')?.textContent"


def go(page, hash):
    page.evaluate(f"location.hash = {json.dumps(hash)}")


def identity(page, run):
    return page.evaluate(f"{row(run)}.dataset.run")


ITERATION = "document.querySelector('.run-view .facts dd')?.textContent"
POINTS = "document.querySelector('#curves .line')?.getAttribute('d').split('L').length ?? 0"


def look(browser, address, pictures, run, other):
    """Every view in both sizes and both colours: nothing too wide, nothing on the console."""
    backgrounds = set()
    for size, (width, height, phone) in SIZES.items():
        for colours in ["light", "dark"]:
            what = f"{size}, {colours}"
            page = browser.open(address, width, height, phone, colours == "dark")
            wait(page, row(run), f"{what}: the runs are there")
            fits(page, width, f"{what}, runs")
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.screenshot(pictures / f"runs-{width}-{colours}.png", whole=False)
            ids = [identity(page, label) for label in (run, other)]
            go(page, f"run={ids[0]}")
            wait(page, "document.querySelectorAll('#curves .line').length >= 5 && document.querySelector('.tree') && document.querySelector('#changes') && document.querySelector('#ledger')", f"{what}: the run is there")
            fits(page, width, f"{what}, run")
            expect_true(page.evaluate("document.querySelector('.tree').getBoundingClientRect().right <= innerWidth"), f"{what}: so is the topology, within the screen")
            page.screenshot(pictures / f"run-{width}-{colours}.png")
            go(page, f"compare={','.join(ids)}")
            wait(page, "document.querySelectorAll('.compare-view .chart .line').length === 2 && document.querySelectorAll('#results tbody tr').length >= 2", f"{what}: the comparison is there")
            fits(page, width, f"{what}, comparison")
            page.screenshot(pictures / f"compare-{width}-{colours}.png")
            is_quiet(page, address, what)
    expect(len(backgrounds), 2, "dark is not light")


def follow(browser, address, pictures, live, finished):
    """A live run appears and moves without reloading, and is compared with a finished one. Says when to begin."""
    page = browser.open(address, *SIZES["wide"][:2])
    wait(page, row(finished), "the finished run is there")
    expect(page.evaluate(f"Boolean({row(live)})"), False, "the live one is not yet")
    page.evaluate("window.sameDocument = true")
    print("BEGIN", flush=True)
    wait(page, row(live), "it appears by itself")
    wait(page, f"{row(live)}?.querySelector('.badge').textContent.includes('running')", "as one that runs")
    page.evaluate(f"{row(live)}.querySelector('input').isTheSame = true")
    before = page.evaluate(cell(live, "Iteration"))
    wait(page, f"{cell(live, 'Iteration')} !== {json.dumps(before)}", "its iterations move in the list")
    expect(page.evaluate(f"{row(live)}.querySelector('input').isTheSame"), True, "a click on its box is not lost when they move")
    page.screenshot(pictures / "live-list.png", whole=False)

    for label in (live, finished):
        index = page.evaluate(f"(() => {{ const box = {row(label)}.querySelector('input'); box.scrollIntoView({{ block: 'center' }}); box.id = 'box-' + {json.dumps(label)}; return box.id; }})()")
        page.click(f"[id={json.dumps(index)}]")
    wait(page, "!document.querySelector('.compare-bar').hidden && document.querySelector('.compare-bar p').textContent.startsWith('2 ')", "check boxes choose runs")
    ids = [identity(page, label) for label in (live, finished)]

    page.evaluate(f"{row(live)}.querySelector('a').click()")
    wait(page, POINTS + " > 1", "a run's curves are there")
    iteration, points = page.evaluate(ITERATION), page.evaluate(POINTS)
    wait(page, f"{ITERATION} !== {json.dumps(iteration)}", "its iterations move there")
    wait(page, f"{POINTS} > {points}", "and its curves grow")
    wait(page, "document.querySelector('#ledger tbody tr')", "bytes by link and kind come with the first checkpoint")
    wait(page, "document.querySelectorAll('.tree .in').length > 0", "who takes part is drawn")
    where = page.evaluate("document.querySelector('.where').textContent")
    wait(page, f"document.querySelector('.where').textContent !== {json.dumps(where)}", "and the interval moves")
    page.screenshot(pictures / "live-run.png")

    go(page, f"compare={','.join(ids)}&axis=bytes&metric=auc")
    wait(page, "document.querySelectorAll('.compare-view .chart .line').length === 2", "it is compared with the finished run")
    expect_true("bytes sent per group" in page.evaluate("document.querySelector('.compare-view .chart').getAttribute('aria-label')"), "against bytes, as the address says")
    line = "document.querySelectorAll('.compare-view .chart .line')[0].getAttribute('d')"
    drawn = page.evaluate(line)
    wait(page, f"{line} !== {json.dumps(drawn)}", "and its line grows there")
    page.screenshot(pictures / "live-compare.png", whole=False)
    go(page, f"run={ids[0]}")
    print("END", flush=True)
    wait(page, "document.querySelector('.state-line .badge')?.textContent.includes('interrupted')", "the page shows by itself that it was stopped")
    expect(page.evaluate("window.sameDocument"), True, "all that without reloading")
    is_quiet(page, address, "following")


def use(browser, address, pictures, run, other):
    """Pointing, touching, keys, switches and deep links."""
    page = browser.open(address, *SIZES["wide"][:2])
    wait(page, row(run), "the runs are there")
    page.evaluate("document.querySelector('#filter').focus()")
    page.call("Input.insertText", text=run)
    wait(page, "document.querySelectorAll('#all-runs tbody tr').length === 1", "the filter filters")
    ids = [identity(page, run)]
    page.evaluate("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))")
    ids.append(identity(page, other))
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    expect_true(page.evaluate("getComputedStyle(document.body).backgroundColor") != before, "the switch changes the colours")
    page.click("#theme")

    page = browser.open(f"{address}#run={ids[0]}", *SIZES["wide"][:2])
    wait(page, POINTS + " > 1", "an address leads to a run")
    expect_true(run in page.evaluate("document.title"), "its title names it")
    tip = "(() => { const t = document.querySelector('.tip'); return !t || t.hidden ? null : t.textContent; })()"
    page.hover("#curves svg", 0.6)
    expect_true("iteration" in (page.evaluate(tip) or ""), "pointing shows values")
    page.screenshot(pictures / "pointing.png", whole=False)
    page.click("#curves label:has([value=bytes]) span")
    page.hover("#curves svg", 0.6)
    expect_true("per group" in (page.evaluate(tip) or ""), "against bytes too")
    page.evaluate("document.querySelector('#curves svg').focus()")
    page.press("ArrowRight")
    first = page.evaluate(tip)
    page.press("ArrowRight")
    expect_true(first and page.evaluate(tip) != first, "arrow keys go from point to point")
    page.press("Escape")
    expect(page.evaluate(tip), None, "Escape ends that")
    where = page.evaluate("document.querySelector('.where').textContent")
    page.click("[aria-label='Previous interval']")
    wait(page, f"document.querySelector('.where').textContent !== {json.dumps(where)}", "a button leads to the interval before")
    text = page.evaluate("document.querySelector('#experiment-section code').textContent")
    expect_true("[train]" in text and "iterations = " in text, "the experiment is there as text")
    files = page.evaluate("[...document.querySelectorAll('.files a')].map((a) => a.textContent)")
    expect_true({"experiment.toml", "manifest.json", "metrics.jsonl", "ledger.csv"} <= set(files), "its files can be downloaded")
    answers = page.evaluate("Promise.all([...document.querySelectorAll('.files a')].map(async (a) => (await fetch(a.href)).headers.get('content-disposition')))")
    expect_true(all((a or "").startswith("attachment") for a in answers), "as files")
    is_quiet(page, address, "using")

    phone = browser.open(f"{address}#run={ids[0]}", *SIZES["narrow"])
    wait(phone, POINTS + " > 1", "the same on a phone")
    phone.touch("#curves svg", 0.7)
    expect_true(phone.evaluate(tip), "a finger shows values")
    expect_true(phone.evaluate("(() => { const b = document.querySelector('.tip').getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; })()"), "within the screen")

    page = browser.open(f"{address}#compare={ids[0]},{ids[1]}&metric=f1", *SIZES["wide"][:2])
    wait(page, "document.querySelectorAll('.compare-view .chart .line').length === 2", "an address leads to a comparison")
    page.click("[data-toggle='0']")
    wait(page, "document.querySelectorAll('.compare-view .chart .line').length === 1", "the legend hides a run")
    expect(page.evaluate("document.querySelector('[data-toggle]').getAttribute('aria-pressed')"), "false", "and says so")
    page.evaluate("(() => { const s = document.querySelector('#metric'); s.value = 'accuracy'; s.dispatchEvent(new Event('change')); })()")
    expect_true("metric=accuracy" in page.evaluate("location.hash"), "the address remembers what is shown")
    is_quiet(page, address, "comparing")


def by_keys(browser, address, pictures, run):
    """Without a mouse: the tab key reaches everything, focus is seen, everything has a name."""
    page = browser.open(address, *SIZES["wide"][:2])
    wait(page, row(run), "the runs are there")
    tab(page)
    expect(page.evaluate("document.activeElement.id"), "skip", "first a way past the header")
    expect_true(page.evaluate("document.activeElement.getBoundingClientRect().top >= 0"), "which is seen then")
    page.press_key("Enter", 13)
    expect(page.evaluate("document.activeElement.id"), "main", "it leads there")
    seen = set()
    for _ in range(30):
        tab(page)
        expect_visible = "(() => { const s = getComputedStyle(document.activeElement); return document.activeElement === document.body || s.outlineStyle !== 'none'; })()"
        if not page.evaluate(expect_visible):
            raise AssertionError(f"no visible focus on {page.evaluate('document.activeElement.outerHTML')[:200]}")
        seen.add(page.evaluate("document.activeElement.tagName + (document.activeElement.type ?? '')"))
    expect_true({"INPUTsearch", "INPUTcheckbox", "A"} <= seen, "the tab key reaches filter, check boxes and runs, and it is seen")
    page.evaluate(f"{row(run)}.querySelector('a').focus()")
    page.press_key("Enter", 13)
    wait(page, POINTS + " > 1", "Enter opens a run")
    nameless = "[...document.querySelectorAll('button, input, select, a, svg[role=img], table, [tabindex=\"0\"]')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels[0]?.textContent.trim()))).map((e) => e.outerHTML)"
    expect(page.evaluate(nameless), [], "whatever can be used has a name")
    expect(page.evaluate("new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size === document.querySelectorAll('[id]').length"), True, "ids are unique")
    is_quiet(page, address, "keys")


def tab(page):
    page.press_key("Tab", 9)


# Measures from the start of the navigation until runs are listed and a click is answered, and the longest stall.
MEASURE = """
(() => {
  window.stalls = [];
  new PerformanceObserver((list) => { for (const e of list.getEntries()) window.stalls.push(Math.round(e.duration)); }).observe({ type: 'longtask', buffered: true });
})()
"""


def many(browser, address, pictures, runs, big):
    """Hundreds of runs, one of them with a huge file: the page can be used within a second, and never stalls."""
    page = browser.open("about:blank", *SIZES["wide"][:2])
    page.call("Page.addScriptToEvaluateOnNewDocument", source=f"{MEASURE}; new MutationObserver((_, o) => {{ if (document.querySelectorAll('#all-runs tbody tr').length >= {runs}) {{ requestAnimationFrame(() => {{ window.interactive ??= performance.now(); }}); o.disconnect(); }} }}).observe(document, {{ childList: true, subtree: true }});")
    page.call("Page.navigate", url=address)
    wait(page, "window.interactive", f"{runs} runs are there")
    interactive = page.evaluate("window.interactive")
    print(f"interactive after {interactive:.0f} ms")
    expect_true(interactive < 1000, "within a second")
    page.evaluate("window.stalls.length = 0")
    answered = page.evaluate("new Promise((resolve) => { const start = performance.now(); const f = document.querySelector('#filter'); f.value = 'nothing like that'; f.dispatchEvent(new Event('input')); requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start))); })")
    print(f"a filter over all of them takes {answered:.0f} ms")
    expect_true(answered < 300, "the filter answers at once")
    page.evaluate("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))")
    started = time.monotonic()
    identity_of_big = identity(page, big)
    go(page, f"run={identity_of_big}")
    wait(page, POINTS + " > 100", "the huge file's curves are there")
    print(f"first curves after {1000 * (time.monotonic() - started):.0f} ms")
    wait(page, "document.querySelector('.reading').textContent === ''", "all of it was read")
    print(f"all of it after {1000 * (time.monotonic() - started):.0f} ms")
    points = page.evaluate(POINTS)
    expect_true(400 <= points <= 1000, f"as {points} points")
    time.sleep(2)
    stalls = page.evaluate("window.stalls")
    print(f"stalls over 50 ms: {stalls}")
    expect_true(max(stalls, default=0) < 400, "and the page never stalled")
    page.screenshot(pictures / "huge.png", whole=False)
    go(page, "")
    wait(page, row(big), "back to all runs")
    page.screenshot(pictures / "many.png", whole=False)
    is_quiet(page, address, "many")


def gone(browser, address, pictures, run, other):
    """A run that is removed while it is looked at, a server that ends and comes back. Says what to do when."""
    page = browser.open(address, *SIZES["wide"][:2])
    wait(page, row(run), "the runs are there")
    go(page, f"run={identity(page, run)}")
    wait(page, POINTS + " > 1", "one is looked at")
    print("REMOVE", flush=True)
    wait(page, "document.querySelector('.run-view .notes')?.textContent.includes('no longer exists')", "a note says that it is gone")
    page.screenshot(pictures / "gone.png", whole=False)
    go(page, "")
    wait(page, f"{row(other)} && !{row(run)}", "the list goes on without it")
    is_quiet(page, address, "gone")
    print("END", flush=True)
    wait(page, "!document.querySelector('#alert').hidden && document.querySelector('#alert').textContent.includes('does not answer')", "an alert says that the server is gone")
    page.screenshot(pictures / "lost.png", whole=False)
    print("AGAIN", flush=True)
    wait(page, "document.querySelector('#alert').hidden", "and the page goes on by itself once it is back")
    wait(page, row(other), "with its runs")


def who(browser, address, pictures, pairs, alone):
    """Who takes part, as their algorithms have it: JFL, and hospitals that ask no device."""
    page = browser.open(address, *SIZES["wide"][:2])
    wait(page, row(pairs), "the runs are there")
    runs = [(identity(page, pairs), "180 to 200", "devices take part.", "takes part"), (identity(page, alone), "195 to 200", "not involved.", "patient is drawn")]
    for run, iterations, words, legend in runs:
        page = browser.open(f"{address}#run={run}", *SIZES["wide"][:2])
        wait(page, f"document.querySelector('.where')?.textContent.includes({json.dumps(iterations)})", f"{run}: iterations {iterations}")
        wait(page, f"document.querySelector('#who')?.textContent.includes({json.dumps(words)})", f"{run}: {words}")
        wait(page, f"document.querySelector('.who-legend').textContent.includes({json.dumps(legend)})", f"{run}: {legend}")
        page.screenshot(pictures / f"{run}.png", whole=True)
        is_quiet(page, address, run)


def main():
    executable, address, folder, *checks = sys.argv[1:]
    pictures = pathlib.Path(folder)
    os.makedirs(pictures, exist_ok=True)
    with Browser(executable) as browser:
        for check in checks:
            name, *arguments = check.split(":")
            try:
                globals()[name](browser, address, pictures, *arguments)
            except AssertionError as error:
                print(f"{name}: {error}", file=sys.stderr)
                sys.exit(1)
    print(json.dumps({"pictures": sorted(p.name for p in pictures.iterdir())}))


main()
