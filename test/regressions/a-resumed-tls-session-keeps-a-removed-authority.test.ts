import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { connect, createServer, type SecureVersion } from 'node:tls'
import { Certificates } from '../../src/listener/certificate.ts'
import { issueCertificates } from '../support/certificates.ts'
import { until } from '../support/until.ts'

const { server: files, client } = issueCertificates()

/**
 * A server with two certificates, whose files can be replaced. It says whether a client is
 * authorized.
 */
async function start(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-authority-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const at = (name: string) => join(folder, name)
  copyFileSync(files.cert, at('first.crt'))
  writeFileSync(at('other.crt'), client.cert)
  writeFileSync(at('other.key'), client.key)
  copyFileSync(files.ca, at('ca.crt'))
  const logged: string[] = []
  const log = (message: string, fields: object = {}) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const certificates = new Certificates(
    {
      ...{ certFile: at('first.crt'), keyFile: files.key, clientCaFile: at('ca.crt') },
      certificates: [{ certFile: at('other.crt'), keyFile: at('other.key') }],
    },
    { debug: log, info: log, warn: log, error: log, announce: log },
  )
  const server = createServer(certificates.options, (socket) => {
    socket.on('error', () => {}).end(`${socket.authorized} ${socket.isSessionReused()}`)
  })
  certificates.renewIn(server as never, 10)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    certificates.close()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, at, logged }
}

async function visit(port: number, servername: string, version: SecureVersion, session?: Buffer) {
  const socket = connect({
    ...{ port, servername, ...(session && { session }), cert: client.cert, key: client.key },
    ...{ minVersion: version, maxVersion: version, rejectUnauthorized: false },
  })
  let ticket: Buffer | undefined
  socket.on('session', (found: Buffer) => (ticket = found))
  const [said] = await once(socket.setEncoding('utf8'), 'data')
  await once(socket, 'end')
  socket.destroy()
  return { said: said as string, ticket }
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
  for (const broken of [undefined, 'first.crt', 'other.crt'])
    test(`After an authority was removed, no ${version} session of it resumes${broken ? `, also while ${broken} is invalid` : ''}`, async (t) => {
      const { port, at, logged } = await start(t)
      const hosts = ['localhost', 'gatehouse']
      const begun = new Map<string, Buffer | undefined>()
      for (const host of hosts) {
        const { ticket } = await visit(port, host, version)
        begun.set(host, ticket)
        assert.equal((await visit(port, host, version, ticket)).said, 'true true')
      }

      if (broken !== undefined) writeFileSync(at(broken), 'invalid')
      // A certificate of another authority takes the place of the authority.
      writeFileSync(at('ca.crt'), client.cert)
      await until('the authority is replaced', () =>
        logged.some((line) => line.startsWith('listener.certificate_renewed') && line.includes('ca.crt')),
      )

      for (const from of hosts)
        for (const to of hosts)
          assert.equal((await visit(port, to, version, begun.get(from))).said, 'false false', `${from} at ${to}`)
    })
