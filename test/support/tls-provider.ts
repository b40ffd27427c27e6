import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { issueCertificates } from './certificates.ts'
import { folderWith } from './command-line.ts'

/** What a world needs for a provider with https. */
export function tlsProvider(t: TestContext) {
  const { server, client } = issueCertificates()
  const folder = folderWith(t, { 'client.crt': client.cert, 'client.key': client.key })
  const textOf = (file: string) => readFileSync(file, 'utf8')
  return {
    tls: { cert: textOf(server.cert), key: textOf(server.key) },
    browserCa: client.ca,
    /** YAML below `provider:`. */
    caFile: `ca_file: ${server.ca}`,
    clientCertificate: `client_certificate: { cert_file: ${folder}/client.crt, key_file: ${folder}/client.key }`,
  }
}
