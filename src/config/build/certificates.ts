import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { readAuthorities, readKeyPair } from '../document/pem-files.ts'
import type { Setting } from '../document/report.ts'
import { namedFile } from '../document/secrets.ts'
import type { CertificateFiles, ListenConfig } from '../model/gateway.ts'
import type { ListenTlsCertificatesSettings, ListenTlsSettings } from '../settings.ts'
import { readEach } from './build-context.ts'

/**
 * Checks both files when the configuration is read, so that a mistake is reported before the start.
 * @param host which the certificate has to be for; `undefined` for any
 */
export function checkTls(
  settings: ListenTlsSettings | undefined,
  at: Setting,
  host: string | undefined,
): ListenConfig['tls'] {
  if (settings === undefined) return undefined
  const others = readEach(settings.certificates, at.below('certificates'), (files, place) => [files, place] as const)
  const pairs = [[settings, at] as const, ...others].map(([files, place]) => readKeyPair(files, place))
  const certAt = at.below('cert_file')
  if (host !== undefined && certAt.isValid)
    warnOfOtherName(
      pairs.map((pair) => pair?.cert),
      certAt,
      host,
    )
  const files = certificateFiles(settings, at)
  const clientCaFile = readClientCa(settings.clientCaFile, at.below('client_ca_file'))
  const certificates = others.flatMap(([each, place]) => certificateFiles(each, place) ?? [])
  return files && { ...files, certificates, clientCaFile }
}

function readClientCa(path: string | undefined, at: Setting): string | undefined {
  return path !== undefined && readAuthorities(path, at) !== undefined ? resolve(namedFile(path, at)) : undefined
}

function certificateFiles(
  { certFile, keyFile }: ListenTlsCertificatesSettings,
  at: Setting,
): CertificateFiles | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined
  return {
    certFile: resolve(namedFile(certFile, at.below('cert_file'))),
    keyFile: resolve(namedFile(keyFile, at.below('key_file'))),
  }
}

/** @param texts PEM; `undefined` for a file that cannot be read */
function warnOfOtherName(texts: readonly (string | undefined)[], at: Setting, host: string): void {
  const address = host.replace(/^\[(.*)\]$/, '$1')
  const isAddress = /^[\d.]+$|:/.test(address)
  const certificates = texts.map((text) => text && new X509Certificate(text))
  const isFor = (certificate: X509Certificate) =>
    (isAddress ? certificate.checkIP(address) : certificate.checkHost(host)) !== undefined
  if (certificates.some((certificate) => !certificate || isFor(certificate))) return
  const names = certificates.map((certificate) => (certificate && certificate.subjectAltName) || 'no name')
  at.warning(
    `is not a certificate for ${host}, the host of external_url: browsers reject it`,
    `it is for ${names.join(', ')}`,
  )
}
