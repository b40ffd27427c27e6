import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderWith } from '../support/command-line.ts'
import { gatewayConfig, read, secretFilesOf } from './examples.ts'

const unit = read('examples/systemd/gatehouse.service')
const text = read('examples/systemd/gateway.yaml')
const config = gatewayConfig(text)
const lines = unit.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
const settings = lines
  .filter((line) => !line.startsWith('['))
  .map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? [line])
const valuesOf = (key: string) => settings.filter(([name]) => name === key).map(([, value = '']) => value)

/**
 * The keys of systemd.unit(5), systemd.service(5), systemd.exec(5) and systemd.kill(5) that the
 * unit may use.
 */
const known = new Set(
  `Description Wants After Type NotifyAccess WatchdogSec ExecStart ExecReload Restart RestartSec TimeoutStopSec KillMode LimitNOFILE Environment
  LoadCredential DynamicUser StateDirectory StateDirectoryMode CapabilityBoundingSet AmbientCapabilities NoNewPrivileges ProtectSystem ProtectHome ProtectProc
  ProtectClock ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables PrivateDevices
  PrivateTmp PrivateUsers RemoveIPC RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality
  SystemCallArchitectures SystemCallFilter SystemCallErrorNumber UMask WantedBy`.split(/\s+/),
)

test('The unit has only sections and settings that systemd knows', () => {
  assert.deepEqual(
    lines.filter((line) => line.startsWith('[')),
    ['[Unit]', '[Service]', '[Install]'],
  )
  assert.deepEqual(
    settings.filter(([name = '', value]) => !known.has(name) || value === undefined),
    [],
  )
})

test('Where systemd-analyze is available, it finds no error in the unit and rates it as well protected', (t) => {
  const program = 'systemd-analyze'
  if (spawnSync(program, ['--version']).error !== undefined)
    return t.diagnostic(`${program} is not there: what it would say has not been seen, only the test above`)
  const folder = folderWith(t, { gatehouse: '#!/bin/sh\n' })
  const file = join(folder, 'gatehouse.service')
  // systemd-analyze requires that the program exists.
  writeFileSync(file, unit.replaceAll('/opt/gatehouse/bin/gatehouse', '/bin/true'))

  const verified = spawnSync(program, ['verify', '--man=no', file], { encoding: 'utf8' })
  const assessed = spawnSync(program, ['security', '--offline=true', '--threshold=15', file], { encoding: 'utf8' })

  assert.deepEqual([verified.status, verified.stderr], [0, ''])
  assert.equal(assessed.status, 0, assessed.stdout)
})

test('The unit starts, reloads and stops the gateway with the right commands and time limits', () => {
  assert.deepEqual(valuesOf('ExecStart'), ['/opt/gatehouse/bin/gatehouse run --config /etc/gatehouse/gateway.yaml'])
  assert.deepEqual(valuesOf('ExecReload'), ['/bin/kill -HUP $MAINPID'])
  assert.ok(Number.parseInt(valuesOf('TimeoutStopSec')[0] ?? '', 10) * 1000 > config.shutdown.drainTimeoutMs)
  // Node.js compiles code at run time.
  assert.deepEqual(valuesOf('MemoryDenyWriteExecute'), [])
})

test('The unit loads each secret of the configuration as a credential', () => {
  const loaded = valuesOf('LoadCredential').map((value) => `/run/credentials/gatehouse.service/${value.split(':')[0]}`)

  assert.deepEqual(secretFilesOf(text).toSorted(), loaded.toSorted())
})

test('The unit lets the gateway write to the folder of the session file, and to no other', () => {
  assert.deepEqual(valuesOf('StateDirectory'), ['gatehouse'])
  assert.deepEqual(valuesOf('ProtectSystem'), ['strict'])
  assert.match(read('docs/deploying.md'), /`\/var\/lib\/gatehouse\/sessions\.db`: the unit creates the folder/)
})

test('The socket unit listens where the configuration does', () => {
  const socket = read('examples/systemd/gatehouse.socket')

  const { host, port } = config.listen
  assert.match(socket, new RegExp(`^ListenStream=${host.replaceAll('.', '\\.')}:${port}$`, 'm'))
})
