import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RedisTls } from './redis.ts'

export interface Certificates {
  /**
   * A server certificate for 127.0.0.1, localhost, `elsewhere` and the hosts of `siteDomain`, and
   * its files. All certificates have the same authority.
   */
  readonly server: RedisTls
  /** A client certificate of the same authority, and the authority's certificate, in PEM. */
  readonly client: RedisTls
}

/** A host that is not this machine by its name. Browsers of tests find it here. */
export const elsewhere = 'id.example.test'

/** A domain of hosts that share one session. */
export const siteDomain = 'example.test'

let issued: Certificates | undefined

/**
 * Creates a certificate authority and the certificates that it signs, once in each process. Their
 * files exist until the process ends.
 */
export function issueCertificates(): Certificates {
  return (issued ??= issue())
}

function issue(): Certificates {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-certificates-'))
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  const at = (name: string) => join(dir, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...newKey, '-days', '2', '-subj', '/CN=ca', '-keyout', at('ca.key'), '-out', at('ca.crt'))
  const sign = (name: string, alternatives: string): RedisTls => {
    const [key, request, cert] = [at(`${name}.key`), at(`${name}.csr`), at(`${name}.crt`)]
    openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', key, '-out', request)
    writeFileSync(at(`${name}.ext`), `subjectAltName=${alternatives}\n`)
    const authority = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2']
    openssl('x509', '-req', '-in', request, ...authority, '-extfile', at(`${name}.ext`), '-out', cert)
    return { ca: at('ca.crt'), cert, key }
  }
  const server = sign(
    'server',
    `DNS:localhost,DNS:${elsewhere},IP:127.0.0.1,DNS:*.${siteDomain},DNS:*.apps.${siteDomain}`,
  )
  const client = sign('client', 'DNS:gatehouse')
  const textOf = (file: string) => readFileSync(file, 'utf8')
  return { server, client: { ca: textOf(client.ca), cert: textOf(client.cert), key: textOf(client.key) } }
}
