/* SPDX-License-Identifier: MIT */
/* The style sheet of view/page.c's page, and its hash for the content security policy. */
#ifndef MTBPF_VIEW_PAGE_STYLE_H
#define MTBPF_VIEW_PAGE_STYLE_H

/* clang-format off */
/* Base64 of the SHA-256 of the text below: tests/cli/page.bats compares them. */
#define PAGE_STYLE_SHA256 "NnkjAZU6NPu5JqI7/kYyVaVPgWCTVuog0EtG14g85tw="

#define PAGE_STYLE \
	":root{--bg:#fff;--fg:#1c2128;--dim:#667;--line:#d8dce2;--panel:#f6f7f9}" \
	"@media(prefers-color-scheme:dark){:root{--bg:#16191d;--fg:#e4e7eb;--dim:#99a2ad;--line:#343a42;--panel:#1e2227}}" \
	"*{box-sizing:border-box}" \
	"body{font:15px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1200px;margin:0 auto;padding:12px}" \
	"h1{font-size:1.5em;margin:.4em 0 0}h2{font-size:1.2em;margin:1.6em 0 .4em;border-bottom:1px solid var(--line)}" \
	"h3{font-size:1em;margin:1.4em 0 .4em;overflow-wrap:anywhere}h4{font-size:.85em;color:var(--dim);margin:1em 0 .3em}" \
	"a{color:inherit;overflow-wrap:anywhere}small,.note,footer,header p{color:var(--dim);font-size:.85em}" \
	"td small{display:block}code,pre{font:12px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}pre{white-space:pre-wrap}" \
	"table{border-collapse:collapse;width:100%}th{text-align:left;white-space:nowrap;color:var(--dim);font-weight:400;font-size:.85em}" \
	"td,th{padding:4px 8px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}" \
	".n{text-align:right;white-space:nowrap;padding-right:16px;width:1%}td .bar{max-width:90px;vertical-align:middle}" \
	".causes td:nth-child(2){white-space:nowrap;width:150px}" \
	"svg{display:inline-block}.plot,.flame{display:block;background:var(--panel);border-radius:4px}" \
	"svg text{font:12px system-ui,sans-serif;fill:var(--fg)}.plot text{font-size:11px;fill:var(--dim)}.flame text{font-size:11px;fill:#16191d}" \
	".axis{stroke:var(--line)}circle{stroke:var(--bg)}" \
	".row{display:grid;grid-template-columns:110px 1fr;gap:8px;align-items:center;font-size:.8em}.row>span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}" \
	".row .slow{font-weight:700}.ends{display:flex;justify-content:space-between;color:var(--dim)}.ends b{font-weight:400}" \
	".legend{font-size:.8em;color:var(--dim);margin:.3em 0}.legend span{white-space:nowrap;margin-right:8px}" \
	".capture{border:1px solid var(--line);border-radius:6px;margin:6px 0;padding:6px 10px;scroll-margin-top:8px}" \
	".capture summary{cursor:pointer;overflow-wrap:anywhere}.capture:target{border-color:#0a7ea4;box-shadow:0 0 0 2px #0a7ea4}" \
	".capture ul{padding-left:18px;overflow-wrap:anywhere}i{display:inline-block;width:10px;height:10px;border-radius:5px;margin-right:6px}" \
	".open{margin-left:8px;white-space:nowrap}" \
	".k0{fill:#d1495b;background:#d1495b}.k1{fill:#2e86ab;background:#2e86ab}.k2{fill:#edae49;background:#edae49}.k3{fill:#3a9d5d;background:#3a9d5d}" \
	".k4{fill:#8e6bbf;background:#8e6bbf}.k5{fill:#e07a3f;background:#e07a3f}.k6{fill:#4bb5b0;background:#4bb5b0}.k7{fill:#b0778d;background:#b0778d}.k8{fill:#8a929c;background:#8a929c}" \
	".p0{fill:#3a9d5d}.p1{fill:#b5a642}.p2{fill:#a0522d}.p3{fill:#c08060}.p4{fill:#d1495b}.p5{fill:#edae49}.p6{fill:#e07a3f}.p7{fill:#8e6bbf}.p8{fill:#6c4a9e}.p9{fill:#2e86ab}.p10{fill:#b9c0c8}" \
	".f0{fill:#f4a261}.f1{fill:#f6b26b}.f2{fill:#ffd08a}.f3{fill:#f2c14e}.f4{fill:#efa08a}.f5{fill:#f7c7a3}.f9{fill:#9fc5d8}" \
	"@media(max-width:640px){.causes thead{display:none}.causes tr{display:grid;grid-template-columns:1fr 1fr 1fr;column-gap:10px;border-bottom:1px solid var(--line);padding:6px 0}" \
	".causes td{border:0;padding:2px 0;text-align:left;width:auto}.causes td[data-l]:before{content:attr(data-l) \" \";color:var(--dim);font-size:.8em}" \
	".causes td.c{grid-column:1/-1;order:-1}.causes td:nth-child(2){width:auto}td .bar{width:40px}.row{grid-template-columns:80px 1fr}}"
/* clang-format on */

#endif
