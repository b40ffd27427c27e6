import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { test, type TestContext } from 'node:test'
import { Lines } from '../../src/observe/writing-log.ts'
import { buildModule } from '../support/bundle.ts'
import { folderWith } from '../support/command-line.ts'

const log = buildModule('src/observe/writing-log.ts')

interface Writing {
  readonly stdout?: 'pipe' | number
  /** `shared`: other processes write into the same stream. */
  readonly options?: readonly string[]
}

/**
 * A process that writes a log; the program's text can use `log`, `access(number)` and `wait(ms)`.
 */
function writing(t: TestContext, program: string, { stdout = 'pipe', options = [] }: Writing = {}) {
  const source = `
    import { createLog } from '${log}'
    import { setTimeout as wait } from 'node:timers/promises'
    const log = createLog({ level: 'info', isShared: process.argv.includes('shared') })
    const access = (n) => log.add(JSON.stringify({ msg: 'request.ended', n, padding: 'x'.repeat(300) }) + '\\n')
    ${program}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source, ...options], {
    stdio: ['pipe', stdout, 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function linesOf(stream: NodeJS.ReadableStream): Promise<Record<string, unknown>[]> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return parse(text)
}

function parse(text: string): Record<string, unknown>[] {
  assert.ok(text.endsWith('\n'))
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('All lines of requests and events are written in their order', async (t) => {
  // All lines fit into the buffer, however slowly they are read.
  const child = writing(
    t,
    `for (let n = 0; n < 1400; n += 1) {
       access(n)
       if (n % 500 === 0) log.warn('in.between', { n })
       if (n % 400 === 0) await wait(12)
     }
     await log.flush(5000)`,
  )

  const lines = await linesOf(child.stdout as NodeJS.ReadableStream)

  assert.deepEqual(
    lines.map(({ msg, n }) => (msg === 'in.between' ? `w${String(n)}` : n)),
    Array.from({ length: 1400 }, (_, n) => (n % 500 === 0 ? [n, `w${n}`] : [n])).flat(),
  )
})

test('A single line of a request is written soon', async (t) => {
  const child = writing(t, `access(1); process.stdin.resume()`)

  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')

  assert.equal(parse(String(chunk))[0]?.['n'], 1)
})

test('Without a reader, lines are dropped and counted without blocking, and the reader learns the number later', async (t) => {
  const child = writing(
    t,
    `for (let n = 0; n < 20000; n += 1) {
       access(n)
       if (n % 100 === 0) await wait(0)
     }
     process.stderr.write('written')
     await log.flush(60_000)
     log.warn('the.end', { dropped: log.dropped().lines })
     await log.flush(60_000)`,
  )
  const stdout = child.stdout as NodeJS.ReadableStream
  await once(child.stderr as NodeJS.ReadableStream, 'data')
  const lines = await linesOf(stdout)

  const requests = lines.filter(({ msg }) => msg === 'request.ended').length
  const told = lines.filter(({ msg }) => msg === 'log.dropped').reduce((sum, { lines }) => sum + Number(lines), 0)
  assert.equal(requests + told, 20_000)
  assert.ok(told > 10_000)
  assert.equal(lines.find(({ msg }) => msg === 'the.end')?.['dropped'], told)
})

test('Other lines never displace an audit event, and dropped audit events are reported as an audit event', async (t) => {
  const child = writing(
    t,
    `const many = async (write) => {
       for (let n = 0; n < 6000; n += 1) {
         write(n)
         if (n % 100 === 0) await wait(0)
       }
     }
     const padding = 'x'.repeat(300)
     await many((n) => log.warn('request.refused', { n, padding }))
     log.audit.info('access.denied', { audit: true, n: 1 })
     await many(access)
     log.audit.info('access.denied', { audit: true, n: 2 })
     for (let n = 3; n < 20_000; n += 1) log.audit.info('access.denied', { audit: true, n, padding })
     process.stderr.write('written')
     await log.flush(60_000)
     log.announce('the.end', { dropped: log.dropped().auditEvents })
     await log.flush(60_000)`,
  )
  const stdout = child.stdout as NodeJS.ReadableStream
  await once(child.stderr as NodeJS.ReadableStream, 'data')
  const lines = await linesOf(stdout)
  const numbered = (name: string) => lines.filter(({ msg }) => msg === name).map(({ n }) => Number(n))

  assert.deepEqual(numbered('access.denied').slice(0, 3), [1, 2, 3])
  // Lines of the access log are dropped first: the warnings before them left no room.
  assert.ok(numbered('request.refused').length > 1000)
  assert.deepEqual(numbered('request.ended'), [])
  const told = lines.find(({ msg }) => msg === 'audit.dropped')
  assert.equal(told?.['audit'], true)
  assert.equal(numbered('access.denied').length + Number(told?.['events']), 19_999)
  assert.equal(lines.find(({ msg }) => msg === 'the.end')?.['dropped'], told?.['events'])
})

/** A stream that several processes may share, and what reads it. */
interface Shared {
  readonly fd: number
  /** Begins to read. It ends when the last process has closed the stream. */
  read(): NodeJS.ReadableStream
  close(): void
}

const sharedStreams: Record<string, (t: TestContext) => Shared> = {
  pipe(t) {
    const path = `${folderWith(t, {})}/pipe`
    assert.equal(spawnSync('mkfifo', [path]).status, 0)
    // With the right to read too, so that opening it waits for no reader.
    const fd = fs.openSync(path, 'r+')
    return {
      fd,
      read() {
        // Opened here, because "cat" could open the path after the last process has closed it.
        const end = fs.openSync(path, 'r')
        const { stdout } = reader(t, ['cat'], end)
        fs.closeSync(end)
        return stdout
      },
      close: () => fs.closeSync(fd),
    }
  },
  socket(t) {
    const { stdin, stdout } = reader(t, ['cat'], 'pipe')
    const { fd } = (stdin as unknown as { readonly _handle: { readonly fd: number } })._handle
    return { fd, read: () => stdout, close: () => stdin?.end() }
  },
}

function reader(t: TestContext, [name = '', ...args]: readonly string[], stdin: number | 'pipe') {
  const child = spawn(name, args, { stdio: [stdin, 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  return { stdin: child.stdin, stdout: child.stdout as NodeJS.ReadableStream }
}

for (const [name, make] of Object.entries(sharedStreams))
  for (const options of name === 'pipe' ? [[], ['shared']] : [[]])
    test(`Audit events are in the ${name} although the process is killed in the same turn (${options[0] ?? 'alone'})`, async (t) => {
      const stream = make(t)
      const program = `access(1)
        for (const n of [2, 3, 4]) log.audit.info('session.ended', { audit: true, n })
        process.kill(process.pid, 'SIGKILL')`
      const exit = once(writing(t, program, { stdout: stream.fd, options }), 'exit')
      const read = linesOf(stream.read())
      await exit
      stream.close()

      assert.deepEqual(
        (await read).map(({ n }) => n),
        [1, 2, 3, 4],
      )
    })

for (const options of [[], ['shared']])
  test(`A process goes on although nothing reads its pipe, and another process has made it block (${options[0] ?? 'alone'})`, async (t) => {
    const { fd, close } = (sharedStreams['pipe'] as (t: TestContext) => Shared)(t)
    t.after(close)
    const program = `
      const { spawnSync } = await import('node:child_process')
      log.info('before')
      // Node.js resets O_NONBLOCK of the standard streams that a new process inherits.
      spawnSync('true', { stdio: 'inherit' })
      for (let n = 0; n < 10_000; n += 1) log.info('after', { n, padding: 'x'.repeat(300) })
      process.stderr.write('goes on')`
    const child = writing(t, program, { stdout: fd, options })

    const [text] = await once(child.stderr as NodeJS.ReadableStream, 'data', { signal: AbortSignal.timeout(20_000) })

    assert.equal(String(text), 'goes on')
  })

for (const [name, make] of Object.entries(sharedStreams)) {
  test(`Processes that share a ${name} do not mix their lines`, async (t) => {
    const shared = make(t)
    const program = `for (let n = 0; n < 1200; n += 1) access(n)
      process.stderr.write('written')
      await log.flush(60_000)`
    const children = [1, 2].map(() => writing(t, program, { stdout: shared.fd, options: ['shared'] }))
    // From now on, because the first one may end while the second one still starts.
    const exits = children.map((child) => once(child, 'exit'))
    // Nothing reads before both have their lines.
    await Promise.all(children.map((child) => once(child.stderr as NodeJS.ReadableStream, 'data')))
    const read = linesOf(shared.read())
    await Promise.all(exits)
    shared.close()

    assert.equal((await read).length, 2400)
  })
}

type Write = (fd: number, memory: Buffer, from: number, bytes: number, at: null, done: Written) => void
type Written = (error: Error | null, bytes: number) => void

/** Lines that are written into a file, with `fs.write` replaced by `write`. */
function linesInto(t: TestContext, write: (real: Write) => Write) {
  const path = `${folderWith(t, { log: '' })}/log`
  const fd = fs.openSync(path, 'w')
  t.after(() => fs.closeSync(fd))
  t.mock.method(fs, 'write', write(fs.write as unknown as Write) as unknown as typeof fs.write)
  const lines = new Lines({ fd, isShared: false }, () => {})
  return { lines, written: () => fs.readFileSync(path, 'utf8') }
}

const manyLines = Array.from({ length: 2000 }, (_, n) => `${JSON.stringify({ n, sub: 'jürgen'.repeat(n % 30) })}\n`)

test('Lines are complete and in order when a write takes only a part of them, or none', async (t) => {
  let count = 0
  const { lines, written } = linesInto(t, (real) => (fd, memory, from, bytes, at, done) => {
    count += 1
    if (count === 3) setImmediate(done, Object.assign(new Error('the pipe is full'), { code: 'EAGAIN' }), 0)
    else real(fd, memory, from, Math.ceil(bytes / 2), at, done)
  })

  for (const [n, line] of manyLines.entries()) {
    if (n % 300 === 0) lines.write(line)
    else lines.add(line)
  }
  assert.ok(await lines.flush(60_000))

  assert.ok(count > 10)
  assert.equal(written(), manyLines.join(''))
})

test('After an error of the disk, the next line is written behind those that were left', async (t) => {
  let isFull = true
  const { lines, written } = linesInto(t, (real) => (fd, memory, from, bytes, at, done) => {
    if (isFull) setImmediate(done, Object.assign(new Error('the disk is full'), { code: 'ENOSPC' }), 0)
    else real(fd, memory, from, bytes, at, done)
  })
  const [last = '', ...others] = manyLines.toReversed()
  for (const line of others.toReversed()) lines.add(line)
  assert.ok(await lines.flush(60_000))
  assert.equal(written(), '')

  isFull = false
  lines.write(last)
  assert.ok(await lines.flush(60_000))

  assert.equal(written(), manyLines.join(''))
})

test('Batches of lines are written from the same memory again', async (t) => {
  const used = new Set<Buffer>()
  const { lines } = linesInto(t, (real) => (fd, memory, from, bytes, at, done) => {
    used.add(memory)
    real(fd, memory, from, bytes, at, done)
  })

  for (const line of manyLines.slice(0, 100)) {
    lines.write(line)
    assert.ok(await lines.flush(60_000))
  }

  assert.equal(used.size, 1)
})

test('A line beyond ASCII counts by its bytes', (t) => {
  t.mock.method(fs, 'writeSync', () => {
    throw Object.assign(new Error('full'), { code: 'EAGAIN' })
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines = new Lines({ fd: 1, isShared: false, isNonBlocking: () => true }, () => {})
  const euros = `${'€'.repeat(100 * 1024 - 1)}\n`

  // One line of 300 KiB is being written. Of the others, three fit into 1 MiB, and a fourth does
  // not.
  for (let count = 0; count < 5; count++) lines.add(euros)
  assert.equal(lines.dropped.lines, 1)
})

test('A line that causes a report of dropped lines is complete, however long it is', async (t) => {
  const chunks: string[] = []
  let isFull = true
  t.mock.method(fs, 'writeSync', (_fd: number, memory: Buffer, from: number, bytes: number) => {
    if (isFull) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
    chunks.push(memory.toString('utf8', from, from + bytes))
    return bytes
  })
  const lines: Lines = new Lines({ fd: 1, isShared: false, isNonBlocking: () => true }, () => lines.add('dropped\n'))
  for (let n = 0; n < 50; n += 1) lines.add(`${'x'.repeat(40_000)}\n`, 'access')
  assert.ok(lines.dropped.lines > 0)

  isFull = false
  const long = `${'y'.repeat(65_530)}\n`
  lines.add(long)
  assert.ok(await lines.flush(60_000))

  assert.ok(chunks.join('').endsWith(`x\n${long}dropped\n`))
})

/** Lines into a stream that does not block and may be full, on a clock that the test moves. */
function linesIntoFull(t: TestContext) {
  const state = { isFull: true, isNonBlocking: true, attempts: 0, written: '' }
  t.mock.method(fs, 'writeSync', (_fd: number, memory: Buffer, from: number, bytes: number) => {
    state.attempts += 1
    if (state.isFull) throw Object.assign(new Error('the pipe is full'), { code: 'EAGAIN' })
    state.written += memory.toString('utf8', from, from + bytes)
    return bytes
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines = new Lines({ fd: 1, isShared: true, isNonBlocking: () => state.isNonBlocking }, () => {})
  return { lines, state, pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('A stream that was full for a moment is written soon, and one that stays full is tried less and less often', (t) => {
  const { lines, state, pass } = linesIntoFull(t)
  lines.write('one\n')
  state.isFull = false
  pass(5)
  assert.equal(state.written, 'one\n')

  state.isFull = true
  state.attempts = 0
  lines.write('two\n')
  for (let ms = 0; ms < 1_000; ms += 1) pass(1)
  assert.ok(state.attempts > 10 && state.attempts < 16, `${state.attempts} attempts in a second`)

  state.isFull = false
  pass(100)
  assert.equal(state.written, 'one\ntwo\n')
})

test('A stream that was full and blocks now is not written by the main thread', (t) => {
  const byThread = t.mock.method(fs, 'write', () => {})
  const { lines, state, pass } = linesIntoFull(t)
  lines.write('one\n')
  assert.equal(state.attempts, 1)

  state.isNonBlocking = false
  pass(5)

  assert.deepEqual([state.attempts, byThread.mock.callCount()], [1, 1])
})

test('Thousands of batches that wait for their reader are written at once, and none overflows the stack', (t) => {
  const { lines, state, pass } = linesIntoFull(t)
  const line = `${'x'.repeat(2_100)}\n`
  for (let n = 0; n < 2_400; n += 1) lines.add(line, n < 480 ? 'log' : 'audit')
  assert.deepEqual(lines.dropped, { lines: 0, auditEvents: 0 })

  state.isFull = false
  pass(100)

  assert.equal(state.written.length, 2_400 * line.length)
})
