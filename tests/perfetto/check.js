#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Reads a trace as Perfetto does, and says what it lost.
//
//   check.js TRACE            a summary; exit 1 where something is wrong with the trace
//   check.js --tree TRACE     also each slice of each thread, "tid depth start_ns end_ns name"
//   check.js --query SQL TRACE
//   check.js --each           for each line "TRACE<tab>FILE" of its input: the slices as with --tree to FILE, and a
//                             line on stdout, which is empty if nothing is wrong with the trace
//
// MTBPF_TRACE_PROCESSOR is the folder that get-tp.sh filled (build/trace-processor).
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');
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
	const options = { each: false, tree: false, queries: [], file: null };
	while (argv.length) {
		const word = argv.shift();
		if (word === '--tree')
			options.tree = true;
		else if (word === '--each')
			options.each = true;
		else if (word === '--query')
			options.queries.push(argv.shift());
		else
			options.file = word;
	}
	if (!options.file === !options.each)
		throw new Error('usage: check.js [--tree] [--query SQL] TRACE | --each');
	return options;
}

// print takes text.
function printRows(rows, print) {
	for (let i = 0; i < rows.length; i += 10000)
		print(rows.slice(i, i + 10000).map((row) => row.join(' ') + '\n').join(''));
}

// What is wrong with the trace that is loaded.
function faults(processor) {
	return CHECKS.flatMap(([what, sql]) => processor.query(sql).map(([detail]) => `${what}: ${detail}`));
}

function start() {
	return TraceProcessor.create(process.env.MTBPF_TRACE_PROCESSOR ?? DEFAULT_DIR);
}

// One processor for many traces, because it takes several times as long to start as to read one of them. What
// could not load a trace is of no use for the next.
async function checkEach() {
	let processor = null;

	for await (const line of readline.createInterface({ input: process.stdin })) {
		const [trace, tree] = line.split('\t');
		let wrong;
		try {
			processor ??= await start();
			processor.reset();
			processor.loadFile(trace);
			wrong = faults(processor)[0] ?? '';
			fs.writeFileSync(tree, '');
			printRows(processor.query(TREE), (text) => fs.appendFileSync(tree, text));
		} catch (error) {
			wrong = `check.js: ${error.message}`;
			processor = null;
		}
		process.stdout.write(wrong.replaceAll('\n', ' ') + '\n');
	}
}

async function checkOne(options) {
	const print = (text) => process.stdout.write(text);
	const processor = await start();

	processor.loadFile(options.file);
	const wrong = faults(processor);
	for (const fault of wrong)
		console.error(fault);
	for (const sql of options.queries)
		printRows(processor.query(sql), print);
	if (options.tree)
		printRows(processor.query(TREE), print);
	else if (!options.queries.length)
		printRows(processor.query(SUMMARY), print);
	process.exitCode = wrong.length ? 1 : 0;
}

async function main() {
	const options = parseArguments(process.argv.slice(2));
	await (options.each ? checkEach() : checkOne(options));
}

main().catch((error) => {
	console.error(`check.js: ${error.message}`);
	process.exitCode = 1;
});
