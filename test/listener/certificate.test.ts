import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { renewCertificate } from '../../src/listener/certificate.ts'
import { until } from '../support/until.ts'

const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** A folder with a certificate, and the certificate that a server would use. */
function watched(t: TestContext, write: (folder: string, content: string) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  write(folder, 'one')
  const served: string[] = []
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  const server = { setSecureContext: ({ cert }: { cert?: unknown }) => void served.push(String(cert)) }
  const watching = renewCertificate(server as never, files, quiet, 10)
  t.after(() => {
    watching.close()
    rmSync(folder, { recursive: true })
  })
  return { served, renew: (content: string) => write(folder, content) }
}

for (const [how, write] of [
  [
    'written over',
    (folder: string, content: string) => {
      for (const name of ['tls.crt', 'tls.key']) writeFileSync(join(folder, name), content)
    },
  ],
  [
    'renamed over',
    (folder: string, content: string) => {
      for (const name of ['tls.crt', 'tls.key']) {
        writeFileSync(join(folder, 'new'), content)
        renameSync(join(folder, 'new'), join(folder, name))
      }
    },
  ],
  [
    'behind a link, as Kubernetes does it',
    (folder: string, content: string) => {
      const data = mkdtempSync(join(folder, 'data-'))
      for (const name of ['tls.crt', 'tls.key']) writeFileSync(join(data, name), content)
      symlinkSync(data, join(folder, 'next'))
      renameSync(join(folder, 'next'), join(folder, '..data'))
      for (const name of ['tls.crt', 'tls.key'])
        try {
          symlinkSync(join(folder, '..data', name), join(folder, name))
        } catch {
          // The link exists since the first renewal.
        }
    },
  ],
] as const) {
  test(`Each renewed certificate is loaded: ${how}`, async (t) => {
    const { served, renew } = watched(t, write)

    for (const content of ['two', 'three', 'four']) {
      renew(content)
      await until(`${content} is served`, () => served.at(-1) === content)
    }
  })
}
