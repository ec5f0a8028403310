// SPDX-License-Identifier: MIT
// Opens an address in headless Chromium, waits until an expression is true of the page, prints what
// a second one gives, as JSON, with the addresses that it asked for and what the console was told,
// and leaves a screenshot. WINDOW=WIDTH,HEIGHT: below 600 wide it is a phone's.
//
//   node browse.js ADDRESS UNTIL RESULT SHOT.png [SECONDS]
//
// Chromium is spoken to through a pipe (its DevTools protocol), so that no port is open.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const [address, until, result, shot, seconds] = process.argv.slice(2);
const deadline = Date.now() + 1000 * (seconds || 60);

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'mtbpf-browse-'));
const browser = spawn(process.env.CHROMIUM || 'chromium',
	['--headless', '--no-sandbox', '--disable-gpu', `--window-size=${process.env.WINDOW || '1600,900'}`, '--no-first-run',
	 '--disable-background-networking', `--user-data-dir=${profile}`, '--remote-debugging-pipe'],
	{ stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

const waiting = new Map();
const seen = [];
const said = [];
const [width, height] = (process.env.WINDOW || '1600,900').split(',').map(Number);
let last = 0;
let rest = '';

function send(method, params, sessionId) {
	const id = ++last;

	browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
	return new Promise((resolve, reject) => waiting.set(id, { resolve, reject, method }));
}

function take(message) {
	const call = waiting.get(message.id);

	if (message.method === 'Network.requestWillBeSent')
		seen.push(message.params.request.url);
	if (message.method === 'Log.entryAdded')
		said.push(message.params.entry.text);
	if (message.method === 'Runtime.exceptionThrown')
		console.error(message.params.exceptionDetails.exception?.description);
	if (!call)
		return;
	waiting.delete(message.id);
	if (message.error)
		call.reject(new Error(`${call.method}: ${message.error.message}`));
	else
		call.resolve(message.result);
}

browser.stdio[4].on('data', (data) => {
	const messages = (rest + data).split('\0');

	rest = messages.pop();
	messages.forEach((text) => take(JSON.parse(text)));
});

async function evaluate(expression, session) {
	const answer = await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true },
		session);

	return answer.result.value;
}

async function look() {
	const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
	const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });

	for (const domain of ['Page', 'Network', 'Runtime', 'Log'])
		await send(`${domain}.enable`, {}, sessionId);
	// A window is never narrower than 500.
	await send('Emulation.setDeviceMetricsOverride',
		{ width, height, deviceScaleFactor: width < 600 ? 2 : 1, mobile: width < 600 }, sessionId);
	await send('Page.navigate', { url: address }, sessionId);
	while (!await evaluate(`!!(${until})`, sessionId)) {
		if (Date.now() > deadline)
			throw new Error(`not seen: ${until}`);
		await new Promise((resolve) => setTimeout(resolve, 200));
	}
	return sessionId;
}

async function main() {
	let session, failure;

	try {
		session = await look();
		console.log(JSON.stringify({ result: await evaluate(result, session), requests: seen, log: said }));
	} catch (error) {
		failure = error;
		console.error(`browse.js: ${error.message}; requests: ${seen.join(' ')}`);
	}
	if (session) {
		await new Promise((resolve) => setTimeout(resolve, 1500)); // drawn a frame later
		const { data } = await send('Page.captureScreenshot', {}, session);
		fs.writeFileSync(shot, Buffer.from(data, 'base64'));
	}
	browser.on('exit', () => {
		fs.rmSync(profile, { recursive: true, force: true });
		process.exit(failure ? 1 : 0);
	});
	send('Browser.close').catch(() => {});
	setTimeout(() => browser.kill('SIGKILL'), 5000).unref();
}

browser.on('error', (error) => {
	console.error(`browse.js: ${error.message}`);
	process.exit(1);
});
main();
