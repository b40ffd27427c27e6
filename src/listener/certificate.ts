import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext, type SecureContext, type TlsOptions } from 'node:tls'
import type { CertificateFiles, ListenTlsConfig } from '../config/model/gateway.ts'
import { OperatorError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** What all certificates of a listener have in common. */
interface CommonOptions {
  readonly minVersion: 'TLSv1.2'
  /**
   * The authorities of client certificates. Each certificate needs them: without `ca`, Node.js
   * accepts client certificates of all public authorities.
   */
  readonly ca?: Buffer
}

/** @throws {OperatorError} when a file cannot be read */
function read(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new OperatorError(`the certificate file ${file} cannot be read: ${reason(cause)}`, { cause })
  }
}

/** @throws {OperatorError} when a file cannot be read */
function readPair({ certFile, keyFile }: CertificateFiles): Certificate {
  return { cert: read(certFile), key: read(keyFile) }
}

/** How often the certificate files are read, in ms. */
const checkEveryMs = 30_000

interface Served {
  readonly files: CertificateFiles
  content: Certificate
  context: SecureContext
  leaf: X509Certificate
}

/**
 * The certificates of a listener: the first one is for clients that ask for no host name (SNI, RFC
 * 6066 §3) or for one that no certificate has. Renewed files are used for new connections; open
 * connections stay. When a new certificate is invalid, the old one stays in use. The files are read
 * periodically, because file system events miss renewals by rename and by symbolic link.
 */
export class Certificates {
  readonly #served: readonly Served[]
  readonly #log: Log
  readonly #clientCaFile: string | undefined
  #common: CommonOptions = { minVersion: 'TLSv1.2' }
  #timer: NodeJS.Timeout | undefined

  /** @throws {OperatorError} when a file cannot be read */
  constructor({ certificates, clientCaFile, ...first }: ListenTlsConfig, log: Log) {
    this.#log = log
    this.#clientCaFile = clientCaFile
    this.#takeClientCa()
    this.#served = [first, ...certificates].map((files) => ({ files, ...loaded(readPair(files), this.#common) }))
  }

  /** The options of a new server. */
  get options(): TlsOptions {
    const [first] = this.#served
    return {
      ...this.#common,
      ...first?.content,
      // A client without a certificate, or with a wrong one, is a matter of the rules.
      ...(this.#clientCaFile !== undefined && { requestCert: true, rejectUnauthorized: false }),
      ...(this.#served.length > 1 && { SNICallback: this.#choose }),
    }
  }

  /** When the first of them ends, in ms since 1970. */
  get firstEnd(): number {
    return Math.min(...this.#served.map(({ leaf }) => Date.parse(leaf.validTo)))
  }

  /** Uses renewed files in this server, until `close`. */
  renewIn(server: Pick<Server, 'setSecureContext'>, everyMs = checkEveryMs): void {
    const [first] = this.#served
    const check = () => {
      const { content } = first ?? {}
      const hasNewCa = this.#isRenewed(this.#clientCaFile, () => this.#takeClientCa())
      for (const served of this.#served) {
        // Also where the certificate is invalid at present.
        if (hasNewCa) Object.assign(served, loaded(served.content, this.#common))
        this.#isRenewed(served.files.certFile, () => this.#takePair(served))
      }
      // With it, the server takes new keys for the tickets of all host names. A session of TLS that
      // began with a removed authority therefore does not resume.
      if (hasNewCa || first?.content !== content) server.setSecureContext({ ...this.#common, ...first?.content })
    }
    this.#timer = setInterval(check, everyMs).unref()
  }

  /** @param take takes the content of the file; `false` when it is the one in use */
  #isRenewed(file: string | undefined, take: () => boolean): boolean {
    try {
      if (!take()) return false
      this.#log.info('listener.certificate_renewed', { file })
      return true
    } catch (error) {
      this.#log.error('listener.certificate_rejected', { file, reason: reason(error) })
      return false
    }
  }

  #takeClientCa(): boolean {
    if (this.#clientCaFile === undefined) return false
    const ca = read(this.#clientCaFile)
    if (this.#common.ca?.equals(ca) === true) return false
    const common = { ...this.#common, ca }
    createSecureContext(common)
    this.#common = common
    return true
  }

  #takePair(served: Served): boolean {
    const found = readPair(served.files)
    const { cert, key } = served.content
    if (found.cert.equals(cert) && found.key.equals(key)) return false
    Object.assign(served, loaded(found, this.#common))
    return true
  }

  close(): void {
    clearInterval(this.#timer)
  }

  readonly #choose = (host: string, done: (error: null, context?: SecureContext) => void): void => {
    const served = this.#served.find(({ leaf }) => leaf.checkHost(host) !== undefined)
    done(null, served?.context)
  }
}

/** @throws when the certificate is invalid, or the key is not its own */
function loaded(content: Certificate, common: CommonOptions): Pick<Served, 'content' | 'context' | 'leaf'> {
  return { content, context: createSecureContext({ ...common, ...content }), leaf: new X509Certificate(content.cert) }
}
