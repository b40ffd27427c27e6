import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { below, type Report } from '../document/report.ts'
import type { ListenConfig } from '../model/gateway.ts'
import type { ListenTlsSettings } from '../settings.ts'
import { namedFile, readNamedFile } from './secrets.ts'

// The certificate authorities of an operating system take about 300 KiB.
const maxPemBytes = 1024 * 1024

/** The text of a PEM file with certificate authorities. */
export function readAuthorities(path: string | undefined, at: string, report: Report): string | undefined {
  const content = path === undefined ? undefined : readNamedFile(path, at, report, maxPemBytes)
  if (content === undefined) return undefined
  const text = content.bytes.toString('latin1')
  return readCertificates(text, at, content.file, report) && text
}

/**
 * Checks both files when the configuration is read, so that a mistake is reported before the start.
 * @param host which the certificate has to be for; `undefined` for any
 */
export function checkTls(
  settings: ListenTlsSettings | undefined,
  at: string,
  host: string | undefined,
  report: Report,
): ListenConfig['tls'] {
  if (settings?.certFile === undefined || settings.keyFile === undefined) return undefined
  const pair = readKeyPair(settings, at, report)
  const certAt = below(at, 'cert_file')
  if (pair !== undefined && host !== undefined && report.isValid(certAt))
    warnOfOtherName(pair.cert, certAt, host, report)
  return {
    certFile: resolve(namedFile(settings.certFile, certAt, report)),
    keyFile: resolve(namedFile(settings.keyFile, below(at, 'key_file'), report)),
  }
}

function warnOfOtherName(pem: string, at: string, host: string, report: Report): void {
  const certificate = new X509Certificate(pem)
  const address = host.replace(/^\[(.*)\]$/, '$1')
  const isAddress = /^[\d.]+$|:/.test(address)
  if ((isAddress ? certificate.checkIP(address) : certificate.checkHost(host)) !== undefined) return
  report.warning(
    at,
    `is not a certificate for ${host}, the host of external_url: browsers reject it`,
    `it is for ${certificate.subjectAltName ?? 'no name'}`,
  )
}

/** Reads a certificate and its private key (PEM), and checks that they belong together. */
export function readKeyPair(
  settings: ListenTlsSettings,
  at: string,
  report: Report,
): { readonly cert: string; readonly key: string } | undefined {
  if (settings.certFile === undefined || settings.keyFile === undefined) return undefined
  const [certAt, keyAt] = [below(at, 'cert_file'), below(at, 'key_file')]
  const cert = readNamedFile(settings.certFile, certAt, report, maxPemBytes)
  const key = readNamedFile(settings.keyFile, keyAt, report, maxPemBytes)
  if (key !== undefined) report.secretFiles.push({ setting: report.pathText(keyAt), file: key.file })
  const certificates = cert && readCertificates(cert.bytes.toString('latin1'), certAt, cert.file, report)
  const privateKey = key && readPrivateKey(key.bytes, keyAt, key.file, report)
  if (certificates?.[0] && privateKey && !certificates[0].checkPrivateKey(privateKey))
    report.error(
      keyAt,
      'is not the key of the certificate in cert_file',
      "put the gateway's own certificate first in cert_file, and those of the authorities after it",
    )
  return cert && key && { cert: cert.bytes.toString('latin1'), key: key.bytes.toString('latin1') }
}

function readCertificates(
  text: string,
  at: string,
  file: string,
  report: Report,
): readonly X509Certificate[] | undefined {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) report.error(at, `${file} contains no certificate in PEM`)
  const certificates = blocks.flatMap((block, index) => {
    try {
      return [new X509Certificate(block)]
    } catch {
      report.error(at, `certificate ${index + 1} in ${file} cannot be read`)
      return []
    }
  })
  return certificates.length > 0 && certificates.length === blocks.length ? certificates : undefined
}

function readPrivateKey(pem: Buffer, at: string, file: string, report: Report): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    report.error(at, `${file} contains no readable private key in PEM`, 'a key with a passphrase is not supported')
    return undefined
  }
}
