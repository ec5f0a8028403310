#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Reads a trace as Perfetto does, and says what it lost.
//
//   check.js TRACE            a summary; exit 1 where something is wrong with the trace
//   check.js --tree TRACE     also each slice of each thread, "tid depth start_ns end_ns name"
//   check.js --query SQL TRACE
//
// MTBPF_TRACE_PROCESSOR is the folder that get-tp.sh filled (build/trace-processor).
'use strict';

const path = require('path');
const { TraceProcessor } = require('./tp.js');

const DEFAULT_DIR = path.join(__dirname, '../../build/trace-processor');

// Slices that no end closed run to the end of the trace in the viewer, and no statistic says so.
const CHECKS = [
	['import error', `
		select name || ifnull('[' || idx || ']', '') || ' = ' || value from stats
		where severity in ('error', 'data_loss') and value != 0`],
	['unfinished slice', `
		select s.name || ' at ' || s.ts || ' of thread ' || t.tid from slice s
		join thread_track k on s.track_id = k.id join thread t using (utid)
		where s.dur < 0 limit 10`],
	['slices but no name', `
		select distinct 'thread ' || t.tid from slice s
		join thread_track k on s.track_id = k.id join thread t using (utid)
		where ifnull(t.name, '') = '' limit 10`],
];

const SUMMARY = `
	select (select count(*) from slice) || ' slices, depth ' ||
	       (select ifnull(max(depth) + 1, 0) from slice) || ', ' ||
	       (select count(distinct track_id) from slice) || ' tracks'`;

// Slices of one track are numbered in the order of their begins: a parent before its children. The
// instants of unwinds and triggers are slices for Perfetto, but no calls. Names are as in text: a kernel module stands
// in its own.
const TREE = `
	select t.tid, s.depth, s.ts, s.ts + s.dur,
		s.name || case
		when s.category = 'inlined' then ' [inlined]'
		when s.category = 'kernel' and s.name not like '%]' then ' [kernel]'
		else '' end
	from slice s
	join thread_track k on s.track_id = k.id join thread t using (utid)
	left join process p using (upid)
	where s.category not in ('leap', 'trigger')
	order by t.tid, p.pid, s.id`;

function parseArguments(argv) {
	const options = { tree: false, queries: [], file: null };
	while (argv.length) {
		const word = argv.shift();
		if (word === '--tree')
			options.tree = true;
		else if (word === '--query')
			options.queries.push(argv.shift());
		else
			options.file = word;
	}
	if (!options.file)
		throw new Error('usage: check.js [--tree] [--query SQL] TRACE');
	return options;
}

function printRows(rows) {
	for (let i = 0; i < rows.length; i += 10000)
		process.stdout.write(rows.slice(i, i + 10000).map((row) => row.join(' ') + '\n').join(''));
}

async function main() {
	const options = parseArguments(process.argv.slice(2));
	const processor = await TraceProcessor.create(process.env.MTBPF_TRACE_PROCESSOR ?? DEFAULT_DIR);
	let wrong = 0;

	processor.loadFile(options.file);
	for (const [what, sql] of CHECKS) {
		for (const [detail] of processor.query(sql)) {
			console.error(`${what}: ${detail}`);
			wrong++;
		}
	}
	for (const sql of options.queries)
		printRows(processor.query(sql));
	if (options.tree)
		printRows(processor.query(TREE));
	else if (!options.queries.length)
		printRows(processor.query(SUMMARY));
	process.exitCode = wrong ? 1 : 0;
}

main().catch((error) => {
	console.error(`check.js: ${error.message}`);
	process.exitCode = 1;
});
