#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mtbpf report -html: a page that needs nothing else, and lets nothing run that a captured name says.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	mtbpf=$(realpath "${O:-build}")/mtbpf
	cd "$BATS_TEST_TMPDIR" || return 1
	export evil='</title><script>document.title=1</script><img src=x onerror=alert(1)>"'"'"'&lt;\u202e'
}

# captures N: recordings with summaries whose every name is what an attacker would choose.
captures() {
	python3 - "$1" <<'END'
import json, os, sys
evil = os.environ['evil'].replace('\\u202e', '\u202e')
for i in range(int(sys.argv[1])):
    name = f'd/{i:03} <b>&"x.mtbpf'
    os.makedirs(name)
    open(name + '/data', 'w').write('x')
    open(name + '/meta.json', 'w').write('{}')
    json.dump({
        'summary': 2, 'data_bytes': 1, 'command': evil, 'unix_ms': 1763700000000 + i * 60000,
        'labels': {'host': evil, evil: evil}, 'hit': {'function': evil}, 'slow_ns': 50000000 + i * 1000, 'ordinary_ns': 10000000,
        'account': {'slow': {'blocked_ns': 40000000, 'on_cpu_ns': 10000000 + i * 1000}, 'ordinary': {'on_cpu_ns': 10000000}},
        'causes': [{'kind': 'blocked', 'ns': 40000000, 'text': evil, 'of': evil, 'meanwhile': evil + 'meanwhile', 'path': [evil, 'f']}],
        'functions': [{'name': evil, 'in': evil, 'extra_ns': 40000000, 'slow_ns': 40000000}],
        'frames': [[0, evil, 50000000], [1, 'f', 40000000]] + [[d, 'f', 40000000] for d in range(2, 100)],
        'threads': [{'name': evil, 'tid': 1, 'slow': True, 'bins': 'CB' * 120}],
    }, open(name + '/summary.json', 'w'))
END
}

@test "all names are text: no element, no attribute, no script is theirs, and nothing is loaded" {
	captures 3
	"$mtbpf" report -q d -html page.html
	python3 - <<'END'
import base64, hashlib, html.parser
page = open('page.html').read()
elements, attributes, text, open_elements = set(), set(), [], []
class Parser(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        elements.add(tag)
        for name, value in attrs:
            attributes.add(name)
            assert name != 'href' or value.startswith('#'), value
        if tag not in ('meta', 'br'):
            open_elements.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        open_elements.pop()
    def handle_endtag(self, tag):
        assert open_elements.pop() == tag, tag
    def handle_data(self, data):
        text.append(data)
Parser().feed(page)
assert not open_elements
assert not elements & {'script', 'img', 'iframe', 'object', 'link', 'base', 'form'}, elements
assert not [a for a in attributes if a.startswith('on') or a in ('style', 'src')], attributes
assert 'http:' not in page and 'https:' not in page
assert sum('<script>document.title=1</script>' in t for t in text) >= 3 * 8
assert sum(t.startswith('while: ') and t.endswith('meanwhile') for t in text) == 3
assert '\u202e' not in page
style = page.split('<style>')[1].split('</style>')[0]
digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
assert f"default-src 'none'; style-src 'sha256-{digest}';" in page
END
}

@test "more captures than a page shows: the table has all of them, and it says how many are left out" {
	captures 250
	"$mtbpf" report -q d -html page.html
	[ "$(grep -c '<details class="capture"' page.html)" -eq 200 ]
	grep -q '50 captures with a smaller excess left out' page.html
	[ "$(grep -c '<circle' page.html)" -eq 250 ]
	[ "$(stat -c %s page.html)" -lt 16000000 ]
}

# bats test_tags=slow
@test "a browser without any network shows it to a desktop and a phone: nothing is asked for, refused, or too wide" {
	for tool in chromium node; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
	captures 3
	"$mtbpf" report -q d -html page.html
	shot=$BATS_TEST_DIRNAME/../perfetto/page_shot
	"$shot" page.html desktop.png capture.png phone.png
	# It would notice.
	sed 's|</h1>|</h1><pre style="white-space:pre">'"$(printf 'wide%.0s' {1..500})"'</pre>|; s|style-src|style-src '"'unsafe-inline'"'|' page.html >wide.html
	! "$shot" wide.html desktop.png capture.png phone.png || false
	sed 's|</h1>|</h1><img src="http://127.0.0.1:9/x.png">|' page.html >asks.html
	! "$shot" asks.html desktop.png capture.png phone.png || false
}

# bats test_tags=slow
@test "a browser shows it: its policy lets the style in, and nothing ran" {
	browser=$(command -v chromium || command -v chromium-browser) || skip "chromium is missing"
	captures 3
	"$mtbpf" report -q d -html page.html
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom \
		"file://$PWD/page.html" >dom 2>log
	grep -q '<title>mtbpf: why it was slow</title>' dom
	! grep -iE 'refused|violat|CONSOLE' log || false
	# Its style holds: a wide page is not a narrow one's.
	for width in 400 1300; do
		timeout 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
			--window-size="$width,900" --screenshot="$PWD/$width.png" "file://$PWD/page.html" 2>>log
		[ "$(stat -c %s "$width.png")" -gt 20000 ]
	done
	# What the policy is for: with a script in the page it refuses that.
	sed 's|</h1>|</h1><script>document.title="ran"</script>|' page.html >bad.html
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --dump-dom "file://$PWD/bad.html" >dom 2>>log
	grep -q '<title>mtbpf: why it was slow</title>' dom
}

@test "a page of one recording; a place that cannot be written" {
	captures 1
	"$mtbpf" report -q d/*.mtbpf -html page.html
	grep -q '<details class="capture"' page.html
	run "$mtbpf" report d -html none/page.html
	[ "$status" -ne 0 ]
	[[ $output == *"cannot write none/page.html: No such file"*"hint: "* ]]
	run "$mtbpf" report d -html page.html -json
	[ "$status" -eq 2 ]
}
