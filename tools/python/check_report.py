"""Looks at a report in a real browser, as a reader would: wide and narrow, light and dark, by mouse, finger and keys.

    python3 tools/python/check_report.py BROWSER REPORT PICTURES

Leaves screenshots and a PDF in the folder PICTURES. Prints what it saw; exit code 1 if anything is wrong.
"""

import json
import os
import pathlib
import sys
import time
import xml.etree.ElementTree as xml

from browser import Browser

SIZES = {"wide": (1440, 900, False), "narrow": (390, 844, True)}


def expect(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")
    print(f"ok  {what}")


def expect_true(found, what):
    expect(bool(found), True, what)


def is_quiet(page, address, what):
    """Nothing on the console, and nothing asked of a network."""
    expect(page.complaints, [], f"{what}: nothing on the console")
    expect([r for r in page.requests if r != address and not r.startswith(("data:", "blob:"))], [], f"{what}: nothing is loaded")
    expect(page.evaluate("typeof window.pwned"), "undefined", f"{what}: no name of a file runs as a script")


VISIBLE = "[...document.querySelectorAll('.panel')].filter((p) => p.getClientRects().length).map((p) => p.className)"
TIP = "(() => { const t = document.querySelector('.tip'); return t.hidden ? null : t.textContent; })()"


def look(browser, address, pictures):
    """Pictures of every size in both colours; nothing is wider than the screen."""
    backgrounds = {}
    for size, (width, height, phone) in SIZES.items():
        for colours in ["light", "dark"]:
            what = f"{size}, {colours}"
            page = browser.open(address, width, height, phone, colours == "dark")
            expect(page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"), width, f"{what}: no wider than the screen")
            expect_true(page.evaluate("document.querySelector('#results').getClientRects().length"), f"{what}: results are there")
            backgrounds[what] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            page.screenshot(pictures / f"{width}-{colours}.png")
            is_quiet(page, address, what)
    expect_true(backgrounds["wide, light"] != backgrounds["wide, dark"], "dark is not light")


def point(browser, address, pictures):
    page = browser.open(address, *SIZES["wide"][:2])
    labels = page.evaluate("JSON.parse(document.getElementById('data').textContent).series.map((s) => s.label)")
    expect(page.evaluate(VISIBLE), ["panel iterations linear"], "at first against iterations")
    page.hover(".panel svg", 0.6)
    tip = page.evaluate(TIP) or ""
    expect([label for label in labels if label not in tip], [], "pointing shows every series")
    expect_true("iteration" in tip, "and where that is")
    expect(page.evaluate("document.querySelectorAll('.cross circle').length"), len(labels), "with a dot on every line")
    page.screenshot(pictures / "pointing.png", whole=False)

    page.click("label:has(#axis-bytes) span")
    expect(page.evaluate(VISIBLE), ["panel bytes linear"], "a tab shows bytes")
    page.hover(".panel.bytes.linear svg", 0.6)
    expect_true("B per group" in (page.evaluate(TIP) or ""), "pointing there shows bytes")
    page.click("label:has(#log) span")
    expect(page.evaluate(VISIBLE), ["panel bytes log"], "the switch makes it logarithmic")
    page.hover(".panel.bytes.log svg", 0.8)
    expect_true(page.evaluate(TIP), "pointing works there too")
    page.click("label:has(#axis-seconds) span")
    expect(page.evaluate(VISIBLE), ["panel seconds log"], "and so for simulated time")

    charts = page.evaluate("document.querySelectorAll('svg[data-metric]').length")
    hidden = "document.querySelectorAll('svg[data-metric] .line.off').length"
    page.click("[data-toggle='0']")
    expect(page.evaluate(hidden), charts, "the legend hides a series in every chart")
    expect(page.evaluate("document.querySelector('[data-toggle]').getAttribute('aria-pressed')"), "false", "and says so")
    page.click("[data-toggle='0']")
    expect(page.evaluate(hidden), 0, "and shows it again")

    page.evaluate("document.querySelector('.panel.seconds.log svg').focus()")
    page.press("ArrowRight")
    first = page.evaluate(TIP)
    page.press("ArrowRight")
    expect_true(first and page.evaluate(TIP) != first, "arrow keys go from point to point")
    page.press("Escape")
    expect(page.evaluate(TIP), None, "Escape ends that")
    is_quiet(page, address, "pointing")


def touch(browser, address, pictures):
    page = browser.open(address, *SIZES["narrow"])
    page.touch(".panel svg", 0.7)
    expect_true(page.evaluate(TIP), "a finger shows values")
    inside = "(() => { const b = document.querySelector('.tip').getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; })()"
    expect_true(page.evaluate(inside), "within the screen")
    page.screenshot(pictures / "touching.png", whole=False)
    is_quiet(page, address, "touching")


def is_whole(drawing):
    return drawing.exists() and drawing.read_bytes().rstrip().endswith(b"</svg>")


def press_buttons(browser, address, pictures):
    page = browser.open(address, *SIZES["wide"][:2])
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    expect_true(page.evaluate("getComputedStyle(document.body).backgroundColor") != before, "the switch changes the colours")
    page.click("#theme")

    # What was copied is seen by pasting it.
    page.evaluate("document.addEventListener('copy', (e) => { window.copied = String(getSelection()) || e.target.value; })")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.click("[data-copy='results']")
    page.wait_for("document.querySelector(\"[data-copy='results']\").textContent === 'Copied'")
    copied = page.evaluate("window.copied") or ""
    expect(copied.split(",")[:3], ["series", "evaluation", "seeds"], "a table is copied as CSV, without the clipboard interface too")

    page.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(pictures.resolve()))
    name = page.evaluate("document.querySelector('[data-file]').dataset.file")
    (pictures / name).unlink(missing_ok=True)
    page.click("[data-file]")
    deadline = time.monotonic() + 20
    # A browser makes the file first, and fills it then.
    while not is_whole(pictures / name) and time.monotonic() < deadline:
        page.evaluate("0")
    file = xml.parse(pictures / name).getroot()
    expect(file.tag, "{http://www.w3.org/2000/svg}svg", "a chart is saved as SVG")
    expect(file[0].get("fill"), "#ffffff", "on white")
    is_quiet(page, address, "buttons")


def print_page(browser, address, pictures):
    page = browser.open(address, *SIZES["wide"][:2], dark=True)
    data = page.pdf(pictures / "report.pdf")
    expect_true(data.startswith(b"%PDF") and len(data) > 20_000, "it prints")
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    expect(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "on white, from a dark screen too")
    expect(page.evaluate("[...document.querySelectorAll('button.quiet')].filter((b) => b.getClientRects().length).length"), 0, "without buttons")
    page.resize(690, 900)
    expect_true(page.evaluate("document.documentElement.scrollWidth") <= 700, "and nothing is cut off at the side")
    page.screenshot(pictures / "print.png")


def read_without_script(browser, address, pictures):
    page = browser.open(address, *SIZES["wide"][:2], script=False)
    expect(page.evaluate(VISIBLE), ["panel iterations linear"], "without script the charts are there")
    page.click("label:has(#axis-bytes) span")
    expect(page.evaluate(VISIBLE), ["panel bytes linear"], "and the tabs work")
    expect(page.evaluate("[...document.querySelectorAll('.needs-js')].filter((b) => b.getClientRects().length).length"), 0, "and buttons that would do nothing are not")


def is_accessible(browser, address, pictures):
    page = browser.open(address, *SIZES["wide"][:2])
    nameless = "[...document.querySelectorAll('button, input, svg[role=img], table')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels[0].textContent.trim()))).length"
    expect(page.evaluate(nameless), 0, "whatever can be used has a name")
    expect(page.evaluate("new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size === document.querySelectorAll('[id]').length"), True, "ids are unique")


def main():
    executable, report, folder = sys.argv[1:]
    pictures = pathlib.Path(folder)
    os.makedirs(pictures, exist_ok=True)
    address = pathlib.Path(report).resolve().as_uri()
    with Browser(executable) as browser:
        for check in [look, point, touch, press_buttons, print_page, read_without_script, is_accessible]:
            try:
                check(browser, address, pictures)
            except AssertionError as error:
                print(f"{check.__name__}: {error}", file=sys.stderr)
                sys.exit(1)
    print(json.dumps({"pictures": sorted(p.name for p in pictures.iterdir())}))


main()
