// SPDX-License-Identifier: MIT
// Drives Perfetto's trace processor (WebAssembly, see get-tp.sh) inside node. Requests and answers
// are protos/perfetto/trace_processor/trace_processor.proto.
'use strict';

const fs = require('fs');
const path = require('path');
const v8 = require('v8');
const { Reader, bytesField, fields, numberField } = require('./protobuf.js');

const REQUEST_SIZE = 32 << 20;
const METHOD = { appendTraceData: 1, finalizeTraceData: 2, query: 3, reset: 11 };
const CELL = { NULL: 1, VARINT: 2, FLOAT64: 3, STRING: 4, BLOB: 5 };

// The bundle is made for a web worker and starts a message loop; the function that it wraps, which
// makes the 32-bit module, is all that is wanted.
function moduleFactory(dir) {
	const entry = 'var engineExports = requireEngine();';
	const source = fs.readFileSync(path.join(dir, 'engine_bundle.node.js'), 'utf8');
	if (!source.includes(entry))
		throw new Error('engine_bundle.node.js is not the one that this was written for');
	const body = source.replace(entry, () => 'return requireTrace_processor();');
	const worker = { location: { href: 'file:///' } };
	return new Function('self', 'WorkerGlobalScope', `${body}\nreturn engine;`)(worker, Object);
}

// V8's baseline compiler alone: its optimising one spends two seconds on the module for each trace, and the traces
// of tests are read in less.
function instantiate(dir, log) {
	v8.setFlagsFromString('--liftoff-only');
	return new Promise((resolve) => {
		const module = moduleFactory(dir)({
			wasmBinary: fs.readFileSync(path.join(dir, 'trace_processor.wasm')),
			noInitialRun: true,
			print: log,
			printErr: log,
			onRuntimeInitialized: () => setImmediate(() => resolve(module)),
		});
	});
}

class TraceProcessor {
	static async create(dir, log = () => {}) {
		return new TraceProcessor(await instantiate(dir, log));
	}

	constructor(module) {
		this.module = module;
		this.sequence = 0;
		this.replies = [];
		const onReply = module.addFunction((address, len) => {
			const start = address >>> 0; // wasm's u32 comes as an i32
			this.replies.push(Buffer.from(module.HEAPU8.slice(start, start + len)));
		}, 'vpi');
		this.buffer = module.ccall('trace_processor_rpc_init', 'pointer',
			['pointer', 'number'], [onReply, REQUEST_SIZE]) >>> 0;
	}

	// Sends a TraceProcessorRpcStream of one request; yields the fields of each answer.
	request(method, argField, arg) {
		const parts = [numberField(1, this.sequence++), numberField(2, method)];
		if (argField)
			parts.push(bytesField(argField, arg));
		const bytes = bytesField(1, Buffer.concat(parts));
		for (let at = 0; at < bytes.length; at += REQUEST_SIZE) {
			const piece = bytes.subarray(at, at + REQUEST_SIZE);
			this.module.HEAPU8.set(piece, this.buffer);
			this.module.ccall('trace_processor_on_rpc_request', 'void', ['number'], [piece.length]);
		}
		const replies = Buffer.concat(this.replies);
		this.replies = [];
		const answers = [];
		for (const [, message] of fields(replies)) {
			const answer = new Map(fields(message));
			if (answer.has(5))
				throw new Error(`trace processor: ${answer.get(5)}`);
			answers.push(answer);
		}
		return answers;
	}

	// Throws where the answer's result says so.
	expectNoError(answers, resultField, errorField) {
		for (const answer of answers) {
			for (const [field, value] of fields(answer.get(resultField) ?? Buffer.alloc(0))) {
				if (field === errorField && value.length)
					throw new Error(`import: ${value}`);
			}
		}
	}

	// Forgets the trace: as new.
	reset() {
		this.request(METHOD.reset);
	}

	loadFile(file) {
		const chunk = Buffer.alloc(8 << 20);
		const fd = fs.openSync(file, 'r');
		try {
			for (let n; (n = fs.readSync(fd, chunk, 0, chunk.length, null)) > 0;) {
				const data = chunk.subarray(0, n);
				this.expectNoError(this.request(METHOD.appendTraceData, 101, data), 201, 2);
			}
		} finally {
			fs.closeSync(fd);
		}
		this.expectNoError(this.request(METHOD.finalizeTraceData), 212, 1);
	}

	// Rows as arrays: numbers (BigInt past 2^53), strings, buffers, null.
	query(sql) {
		const rows = [];
		let columns = 0;
		for (const answer of this.request(METHOD.query, 103, bytesField(1, sql))) {
			for (const [field, value] of fields(answer.get(203) ?? Buffer.alloc(0))) {
				if (field === 1)
					columns++;
				else if (field === 2 && value.length)
					throw new Error(`SQL: ${value}`);
				else if (field === 3)
					readBatch(value, columns, rows);
			}
		}
		return rows;
	}
}

// QueryResult.CellsBatch: the cells' types in row order, and each type's values in a list.
function readBatch(batch, columns, rows) {
	const empty = Buffer.alloc(0);
	let types = empty, varints = new Reader(empty), floats = new Reader(empty), strings = [];
	const blobs = [];
	for (const [field, value] of fields(batch)) {
		switch (field) {
		case 1: types = value; break;
		case 2: varints = new Reader(value); break;
		case 3: floats = new Reader(value); break;
		case 4: blobs.push(value); break;
		case 5: strings = value.toString('utf8').split('\0'); break;
		}
	}
	let nextString = 0, nextBlob = 0, row = [];
	for (const type of types) {
		switch (type) {
		case CELL.NULL: row.push(null); break;
		case CELL.VARINT: row.push(varints.varint()); break;
		case CELL.FLOAT64: row.push(floats.take(8).readDoubleLE()); break;
		case CELL.STRING: row.push(strings[nextString++]); break;
		case CELL.BLOB: row.push(blobs[nextBlob++]); break;
		default: throw new Error(`unexpected cell type ${type}`);
		}
		if (row.length === columns) {
			rows.push(row);
			row = [];
		}
	}
}

module.exports = { TraceProcessor };
