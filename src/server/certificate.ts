import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { OperatorError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** @throws {OperatorError} when a file cannot be read */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const read = (file: string) => {
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new OperatorError(`the certificate file ${file} cannot be read: ${reason(cause)}`, { cause })
    }
  }
  return { cert: read(certFile), key: read(keyFile) }
}

/** How often the files of the certificate are looked at, in ms. */
const lookEveryMs = 30_000

/**
 * Takes a renewed certificate without closing a connection; one that does not fit leaves the old
 * one in place. The files are read again and again: what watches a file misses the ways in which
 * certificates are renewed, by renaming and behind links.
 */
export function renewCertificate(
  server: Pick<Server, 'setSecureContext'>,
  tls: CertificateFiles,
  log: Log,
  everyMs = lookEveryMs,
): { close(): void } {
  let seen = readCertificate(tls)
  const look = () => {
    try {
      const found = readCertificate(tls)
      if (found.cert.equals(seen.cert) && found.key.equals(seen.key)) return
      seen = found
      server.setSecureContext(found)
      log.info('listener.certificate_renewed', { file: tls.certFile })
    } catch (error) {
      log.error('listener.certificate_rejected', { file: tls.certFile, reason: reason(error) })
    }
  }
  const timer = setInterval(look, everyMs).unref()
  return { close: () => clearInterval(timer) }
}
