import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpSchemeMismatch, schemeMismatch, speaksTls } from '../../src/wire/scheme-mismatch.ts'
import { issueCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis.ts'
import { explainingTlsServer, plainServer, silentServer, tlsServer } from '../support/tls-servers.ts'

test('The first byte of a server shows whether it speaks TLS', async (t) => {
  const { server } = issueCertificates()

  assert.equal(await speaksTls('127.0.0.1', await plainServer(t)), false)
  assert.equal(await speaksTls('127.0.0.1', await tlsServer(t, server)), true)
  assert.equal(await speaksTls('127.0.0.1', await explainingTlsServer(t)), true)
  assert.equal(await speaksTls('127.0.0.1', (await startRedis(t)).port), false)
  assert.equal(await speaksTls('127.0.0.1', (await startRedis(t, { tls: server })).port), true)
  assert.equal(await speaksTls('127.0.0.1', await silentServer(t)), undefined)
  assert.equal(await speaksTls('127.0.0.1', await freePort()), undefined)
})

test('A matching scheme, or another cause of failure, is not reported as a mismatch', async (t) => {
  const port = await plainServer(t)

  assert.equal(await httpSchemeMismatch('socket hang up', new URL(`http://127.0.0.1:${port}`)), undefined)
  assert.equal(await httpSchemeMismatch('certificate has expired', new URL(`https://127.0.0.1:${port}`)), undefined)
  assert.equal(
    await httpSchemeMismatch('wrong version number', new URL(`https://127.0.0.1:${port}`)),
    `port ${port} does not speak TLS, which https:// needs: name the port that does, or write http://`,
  )
  const required = { host: '127.0.0.1', port, isTls: true, tlsScheme: 'https://' }
  assert.equal(
    await schemeMismatch('wrong version number', required),
    `port ${port} does not speak TLS, which https:// needs: name the port that does`,
  )
})
