import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Setting } from './report.ts'
import { readNamedFile } from './secrets.ts'

// The certificate authorities of an operating system take about 300 KiB.
const maxPemBytes = 1024 * 1024

/** The text of a PEM file with certificate authorities. */
export function readAuthorities(path: string, at: Setting): string | undefined {
  const content = readNamedFile(path, at, maxPemBytes)
  if (content === undefined) return undefined
  const text = content.bytes.toString('latin1')
  return readCertificates(text, at, content.file) && text
}

/** Reads a certificate and its private key (PEM), and checks that they belong together. */
export function readKeyPair(
  settings: { readonly certFile?: string | undefined; readonly keyFile?: string | undefined },
  at: Setting,
): { readonly cert: string; readonly key: string } | undefined {
  if (settings.certFile === undefined || settings.keyFile === undefined) return undefined
  const [certAt, keyAt] = [at.below('cert_file'), at.below('key_file')]
  const cert = readNamedFile(settings.certFile, certAt, maxPemBytes)
  const key = readNamedFile(settings.keyFile, keyAt, maxPemBytes)
  if (key !== undefined) at.report.secretFiles.push({ setting: keyAt.path, file: key.file })
  if (key !== undefined && isPrivateKey(cert?.bytes) && isCertificate(key.bytes)) {
    certAt.error('contains the private key, and key_file the certificate', 'exchange cert_file and key_file')
    keyAt.markReported()
    return undefined
  }
  const certificates = cert && readCertificates(cert.bytes.toString('latin1'), certAt, cert.file)
  const privateKey = key && readPrivateKey(key.bytes, keyAt, key.file)
  if (certificates?.[0] && privateKey && !certificates[0].checkPrivateKey(privateKey))
    keyAt.error(
      'is not the key of the certificate in cert_file',
      "put the gateway's own certificate first in cert_file, and those of the authorities after it",
    )
  return cert && key && { cert: cert.bytes.toString('latin1'), key: key.bytes.toString('latin1') }
}

function isPrivateKey(pem: Buffer | undefined): boolean {
  return pem?.includes('PRIVATE KEY-----') === true && !isCertificate(pem)
}

function isCertificate(pem: Buffer): boolean {
  return pem.includes('-----BEGIN CERTIFICATE-----') && !pem.includes('PRIVATE KEY-----')
}

function readCertificates(text: string, at: Setting, file: string): readonly X509Certificate[] | undefined {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0)
    at.error(
      `${file} contains no certificate in PEM`,
      text.includes('PRIVATE KEY-----') ? 'it contains a private key' : undefined,
    )
  const certificates = blocks.flatMap((block, index) => {
    try {
      return [new X509Certificate(block)]
    } catch {
      at.error(`certificate ${index + 1} in ${file} cannot be read`)
      return []
    }
  })
  return certificates.length > 0 && certificates.length === blocks.length ? certificates : undefined
}

function readPrivateKey(pem: Buffer, at: Setting, file: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    at.error(
      `${file} contains no readable private key in PEM`,
      isCertificate(pem) ? 'it contains a certificate' : 'a key with a passphrase is not supported',
    )
    return undefined
  }
}
