// SPDX-License-Identifier: MIT
// A service: each line of stdin is a request, handled in the callback of the read.
'use strict';
const fs = require('fs');

const text = JSON.stringify(Array.from({length: 600000}, (_, i) => ({id: i, name: `name ${i}`, tags: ['a', 'b']})));
let live = [];

const causes = {
  quick() {},
  json: () => JSON.parse(text),
  // What is live is used here: else it is garbage before the first request.
  gc: () => { gc(); return live.length; },
  fs: () => fs.readFileSync('fifo'),
};

function handleRequest(what) {
  const start = process.hrtime.bigint();
  causes[what]();
  return process.hrtime.bigint() - start;
}

for (let i = 0; i < 4000000; i++)
  live.push({i});
process.stdin.on('data', (data) => process.stdout.write(`total=${handleRequest(data.toString().trim())}\n`));
process.stdout.write('ready\n');
