// SPDX-License-Identifier: MIT
// As much of the protobuf wire format as trace processor's RPC needs.
'use strict';

const VARINT = 0, FIXED64 = 1, LEN = 2, FIXED32 = 5;

function encodeVarint(value) {
	const bytes = [];
	for (; value >= 128; value = Math.floor(value / 128))
		bytes.push((value % 128) | 128);
	bytes.push(value);
	return Buffer.from(bytes);
}

function numberField(number, value) {
	return Buffer.concat([encodeVarint(number * 8 + VARINT), encodeVarint(value)]);
}

function bytesField(number, value) {
	const bytes = Buffer.from(value);
	return Buffer.concat([encodeVarint(number * 8 + LEN), encodeVarint(bytes.length), bytes]);
}

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	more() {
		return this.at < this.bytes.length;
	}

	// A number, or a BigInt where a double would not hold it: negative ones take all ten bytes.
	varint() {
		const start = this.at;
		let value = 0, scale = 1;
		for (;;) {
			const byte = this.bytes[this.at++];
			value += (byte & 127) * scale;
			scale *= 128;
			if (byte < 128)
				break;
		}
		return value <= Number.MAX_SAFE_INTEGER ? value : this.bigVarint(start);
	}

	bigVarint(start) {
		let value = 0n;
		for (let i = this.at - 1; i >= start; i--)
			value = (value << 7n) | BigInt(this.bytes[i] & 127);
		return BigInt.asIntN(64, value);
	}

	take(len) {
		this.at += len;
		return this.bytes.subarray(this.at - len, this.at);
	}

	value(wireType) {
		switch (wireType) {
		case VARINT:
			return this.varint();
		case FIXED64:
			return this.take(8);
		case LEN:
			return this.take(this.varint());
		case FIXED32:
			return this.take(4);
		}
		throw new Error(`unexpected wire type ${wireType}`);
	}
}

function* fields(bytes) {
	const reader = new Reader(bytes);
	while (reader.more()) {
		const tag = reader.varint();
		yield [tag >>> 3, reader.value(tag & 7)];
	}
}

module.exports = { Reader, bytesField, fields, numberField };
