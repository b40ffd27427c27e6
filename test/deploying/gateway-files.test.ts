import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { loadConfig } from '../../src/config/load.ts'
import { recordingTerminal } from '../support/command-line.ts'
import { gatewayFile, gatewayFiles } from './examples.ts'

/**
 * Warnings that are intended here, because a network policy or a separate network keeps other
 * clients away.
 */
const meant = ['admin.listen', 'session.store.redis.url']

for (const [path, text] of gatewayFiles())
  test(`gatehouse check accepts the configuration in ${path}, and its tests pass`, async () => {
    const file = gatewayFile(text)
    const { said, terminal } = recordingTerminal({})

    const code = await check({ ...terminal, file })

    assert.equal(code, 0, said.err)
    assert.match(said.out, /is valid; its 2 tests pass/)
    const loaded = loadConfig(file, {})
    const warnings = loaded.ok ? loaded.warnings.map(({ path: setting }) => setting) : []
    assert.deepEqual(
      warnings.filter((setting) => !meant.includes(setting)),
      [],
    )
  })
