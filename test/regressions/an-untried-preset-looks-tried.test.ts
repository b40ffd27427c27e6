import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'

test('The log at the start says that a preset is untried', async (t) => {
  const { file, env } = await prepareGateway(t)
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^( +)url:.*$/m, '$&\n$1preset: nexus'))

  const gateway = startCommand(t, ['run', '--config', file], { env })

  const { warnings } = await gateway.said('config.warnings')
  assert.match(String(warnings), /upstreams\.orders\.preset: is untried/)
})
