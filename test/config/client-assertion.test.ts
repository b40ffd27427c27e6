import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeAssertion, readClientAssertion } from '../../src/config/client-assertion.ts'
import { platformJwt } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'

const now = Date.UTC(2026, 0, 1)
const jwtOf = (more: object) => platformJwt({ exp: now / 1000 + 600, ...more })

test('A JWT is read with its claims, whatever line break follows it', (t) => {
  const file = join(folderWith(t, { token: `${jwtOf({ aud: ['a', 'b'] })}\n` }), 'token')

  const found = readClientAssertion(file, now)

  assert.ok(!('why' in found))
  assert.equal(
    describeAssertion(found),
    'iss https://cluster.example.com, sub system:serviceaccount:orders:gatehouse, aud a and b, until 2026-01-01T00:10:00.000Z',
  )
  assert.equal(found.jwt, jwtOf({ aud: ['a', 'b'] }))
})

const unusable: Readonly<Record<string, readonly [content: string, why: RegExp]>> = {
  'that is half written': [jwtOf({}).slice(0, 60), /^is not a signed JWT$/],
  'that is empty': ['', /^is not a signed JWT$/],
  'whose JWT has no signature': [jwtOf({}).replace(/[^.]*$/, ''), /^is not a signed JWT$/],
  'with two JWTs': [`${jwtOf({})}\n${jwtOf({})}`, /^is not a signed JWT$/],
  'whose JWT never expires': [jwtOf({ exp: undefined }), /without iss, sub, aud or exp$/],
  'whose JWT expires at a text': [jwtOf({ exp: 'tomorrow' }), /without iss, sub, aud or exp$/],
  'whose JWT is for nobody': [jwtOf({ aud: [] }), /without iss, sub, aud or exp$/],
  'whose JWT has expired': [jwtOf({ exp: now / 1000 }), /^has expired \(exp 2026-01-01T00:00:00.000Z\)$/],
  'that is too large': ['x'.repeat(64 * 1024 + 1), /^is larger than 64 KiB$/],
}

for (const [what, [content, why]] of Object.entries(unusable))
  test(`A file ${what} authenticates nobody`, (t) => {
    const file = join(folderWith(t, {}), 'token')
    assert.match(String(Object.values(readClientAssertion(file, now))), /does not exist/)
    writeFileSync(file, content)

    const found = readClientAssertion(file, now)

    assert.ok('why' in found)
    assert.match(found.why, why)
  })
