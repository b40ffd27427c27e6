// Slow: 4 s, the program starts with each supported version of Node.js
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import manifest from '../package.json' with { type: 'json' }
import { gatehouse, isAlive, root, startCommand } from './support/command.ts'

const node = join(root, '.ci', 'node')
const printVersion = ['-p', 'process.versions.node']

/** The environment of a Node.js that says that it has this version. */
function ofVersion(version: string) {
  const module = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}` }
}

/** A user without Node.js in the cache, and with this registry. */
function freshUser(t: TestContext, registry: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-user-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const env = {
    XDG_CACHE_HOME: folder,
    npm_config_cache: join(folder, 'npm'),
    npm_config_registry: registry,
    INSTALLED_NODE: undefined,
  }
  return { cached: () => readdirSync(join(folder, 'gatehouse')), env }
}

/** A port without a server. */
const unreachable = 'http://127.0.0.1:1/'
/** A program that ends with the exit code 7 at a signal. */
const waits = `for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(7))
  setInterval(() => {}, 1000)
  console.log('started', process.pid)`

test('The manifest names the supported versions of Node.js', () => {
  assert.equal(manifest.engines.node, '^22.21.0 || ^24.9.0 || ^26.0.0')
})

for (const version of ['20.19.0', '22.20.0', '23.11.1', '24.8.0'])
  test(`The program says in one line that it does not run on Node.js ${version}`, async (t) => {
    const program = startCommand(t, ['--version'], { program: gatehouse, env: ofVersion(version) })

    assert.equal(await program.ended, 1)
    assert.equal(
      program.err(),
      `gatehouse: This is Node.js ${version}. Gatehouse needs 22.21 or a newer 22, 24.9 or a newer 24, or 26.\n`,
    )
    assert.equal(program.out(), '')
  })

for (const version of ['22.21.0', '24.9.0', '26.0.0', '28.0.0'])
  test(`The program runs on Node.js ${version}`, async (t) => {
    const program = startCommand(t, ['--version'], { program: gatehouse, env: ofVersion(version) })

    assert.equal(await program.ended, 0)
    assert.match(program.out(), new RegExp(manifest.version))
  })

for (const [version, isUsed] of [
  ['24.9.0', true],
  ['26.0.0', true],
  ['24.8.0', false],
  ['25.9.0', false],
  ['28.0.0', false],
] as const)
  test(`Commands of a clone ${isUsed ? 'use' : 'do not use'} an installed Node.js ${version}`, async (t) => {
    const { env } = freshUser(t, unreachable)

    const command = startCommand(t, printVersion, { program: [node], env: { ...env, ...ofVersion(version) } })

    await command.ended
    assert.equal(!command.err().includes('could not provide'), isUsed)
  })

test('Commands of a clone run on Node.js 24 where the installed one is older', async (t) => {
  const installed = execFileSync('node', printVersion, { encoding: 'utf8' }).trim()
  if (['24', '26'].includes(installed.split('.')[0] ?? '')) return t.skip(`Node.js ${installed} is installed`)
  const env = { INSTALLED_NODE: undefined }
  const version = startCommand(t, printVersion, { program: [node], env })
  const ofClone = startCommand(t, ['run', '-s', 'gatehouse', '--', '--version'], { program: ['npm'], env })

  assert.equal(await version.ended, 0)
  assert.match(version.out(), /^24\./)
  assert.equal(await ofClone.ended, 0)
  assert.match(ofClone.out(), new RegExp(manifest.version))
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(`${signal} reaches the program of a command, and its exit code is that of the command`, async (t) => {
    const command = startCommand(t, ['-e', waits], { program: [node] })
    // The command is the program: nothing is between them.
    await command.prints(`started ${command.pid}`)

    process.kill(command.pid, signal)

    assert.equal(await command.ended, 7)
    assert.equal(isAlive(command.pid), false)
  })

test('Without the registry, a command on Node.js 20 ends with an advice', async (t) => {
  const { env, cached } = freshUser(t, unreachable)

  const command = startCommand(t, printVersion, { program: [node], env: { ...env, ...ofVersion('20.19.0') } })

  assert.equal(await command.ended, 1)
  assert.match(
    command.err(),
    /This is Node\.js 20\.19\.0\. The npm registry could not provide Node\.js 24: npm pack failed/,
  )
  assert.match(command.err(), /\nInstall Node\.js 24 \(\S+\), and repeat the command\.\n$/)
  assert.equal(command.out(), '')
  assert.deepEqual(cached(), [])
})

test('Without the registry, a command on Node.js 22 uses it', async (t) => {
  const { env } = freshUser(t, unreachable)

  const command = startCommand(t, printVersion, { program: [node], env: { ...env, ...ofVersion('22.21.0') } })

  assert.equal(await command.ended, 0)
  assert.equal(command.out(), '22.21.0\n')
  assert.match(command.err(), /\nGatehouse also supports 22\.21\.0\. To use it, set INSTALLED_NODE=1\.\n$/)
})

test('With INSTALLED_NODE=1, a command on Node.js 22 does not ask the registry', async (t) => {
  const { env } = freshUser(t, unreachable)
  const withInstalled = { ...env, ...ofVersion('22.21.0'), INSTALLED_NODE: '1' }

  const command = startCommand(t, printVersion, { program: [node], env: withInstalled })

  assert.equal(await command.ended, 0)
  assert.deepEqual([command.out(), command.err()], ['22.21.0\n', ''])
})

test('A package with other content than the pinned one does not run', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-registry-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'package', 'bin'), { recursive: true })
  writeFileSync(join(folder, 'package', 'bin', 'node'), '#!/bin/sh\necho v24.21.0\n', { mode: 0o755 })
  const manifestOfNode = { name: `node-${process.platform}-${process.arch}`, version: '24.21.0' }
  writeFileSync(join(folder, 'package', 'package.json'), JSON.stringify(manifestOfNode))
  const archive = execFileSync('tar', ['-czf', '-', '-C', folder, 'package'])
  const registry = createServer((req, res) => {
    if (req.url?.endsWith('.tgz') === true) return res.end(archive)
    const versions = { '24.21.0': { ...manifestOfNode, dist: { tarball: `http://${req.headers.host}/node.tgz` } } }
    return res.setHeader('content-type', 'application/json').end(JSON.stringify({ ...manifestOfNode, versions }))
  }).listen(0, '127.0.0.1')
  t.after(() => registry.close())
  await once(registry, 'listening')
  const { env, cached } = freshUser(t, `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`)

  const command = startCommand(t, printVersion, { program: [node], env: { ...env, ...ofVersion('20.19.0') } })

  assert.equal(await command.ended, 1)
  assert.match(command.err(), /could not provide Node\.js 24: the integrity of the package is wrong\.\n/)
  assert.deepEqual(cached(), [])
})
