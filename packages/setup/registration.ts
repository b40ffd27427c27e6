import { isScalar, parse, parseDocument } from 'yaml'
import {
  createOutbound,
  type GatewayConfig,
  isLoopback,
  isObject,
  metadataUrl,
  objectIn,
  OperatorError,
  type Outbound,
  printable,
  type ProviderConfig,
  readInput,
  reason,
} from '../../src/entries/setup.ts'
import { clientMetadata, type Metadata } from './client-metadata.ts'

/** Where a client is registered, and the token for it (RFC 7591 §3.2.1). It is a secret. */
export interface RegisteredClient {
  readonly client_id: string
  readonly registration_client_uri?: string
  readonly registration_access_token?: string
}

/** What the provider has registered. */
export interface Registered {
  readonly client: RegisteredClient
  /** Absent: the client has none, or the provider does not show it. */
  readonly client_secret: string | undefined
  readonly metadata: Metadata
}

/** Members of a response that are not metadata of the client (RFC 7591 §3.2.1). */
const ofResponse = [
  ...['client_id', 'client_secret', 'client_id_issued_at', 'client_secret_expires_at'],
  ...['registration_access_token', 'registration_client_uri'],
]

/** Registers the gateway as a client of a provider, and reads and changes its registration. */
export class Registrar {
  readonly #provider: ProviderConfig
  readonly #config: GatewayConfig
  readonly #outbound: Outbound

  constructor(provider: ProviderConfig, config: GatewayConfig) {
    this.#provider = provider
    this.#config = config
    this.#outbound = createOutbound(provider)
  }

  close(): Promise<void> {
    return this.#outbound.close()
  }

  /** What the gateway needs, with the scopes and grants that the provider knows. */
  async wanted(): Promise<Metadata> {
    // An OAuth provider without OpenID Connect has `metadata`, which name no such endpoint.
    if (this.#provider.oauth2 !== undefined) this.#refuse()
    return clientMetadata(this.#provider, this.#config, await this.#announced())
  }

  /**
   * RFC 7591 §3.
   * @param token the initial access token, if the provider needs one
   * @throws {OperatorError} with the error of the provider, here and below
   */
  async register(wanted: Metadata, token: string | undefined): Promise<Registered> {
    const endpoint = (await this.#announced())['registration_endpoint']
    if (typeof endpoint !== 'string') return this.#refuse()
    return this.#send('POST', endpoint, token, wanted)
  }

  #refuse(): never {
    throw new OperatorError(
      `${this.#provider.issuer} announces no registration_endpoint: register the client there by hand, as gatehouse check prints it`,
    )
  }

  /** RFC 7592 §2.1. */
  read({ registration_client_uri: uri, registration_access_token: token }: RegisteredClient): Promise<Registered> {
    if (uri === undefined || token === undefined)
      throw new OperatorError(
        `${this.#provider.issuer} has given no address or token to read or change the registration (RFC 7592)`,
      )
    return this.#send('GET', uri, token)
  }

  /** RFC 7592 §2.2: what the gateway does not know stays as it is. */
  update(client: RegisteredClient, before: Registered, wanted: Metadata): Promise<Registered> {
    const { client_id, registration_client_uri: uri = '', registration_access_token: token } = client
    const { client_secret } = before
    const secret = client_secret === undefined ? {} : { client_secret }
    return this.#send('PUT', uri, token, { ...before.metadata, ...wanted, client_id, ...secret })
  }

  async #announced(): Promise<Metadata> {
    const { issuer, metadata } = this.#provider
    if (metadata !== undefined) return metadata
    const announced = await this.#json('GET', metadataUrl(issuer), undefined)
    if (announced['issuer'] !== issuer)
      throw new OperatorError(`the metadata are those of ${printable(String(announced['issuer']))}: check the issuer`)
    return announced
  }

  async #send(method: string, url: string, token: string | undefined, metadata?: Metadata): Promise<Registered> {
    const body = await this.#json(method, url, token, metadata)
    const text = (name: string) => (typeof body[name] === 'string' ? body[name] : undefined)
    const [client_id, client_secret] = [text('client_id'), text('client_secret')]
    if (client_id === undefined) throw new OperatorError(`${method} ${url}: the response has no client_id`)
    // RFC 6749 appendices A.1 and A.2. A terminal would obey other characters.
    if (!/^[ -~]+$/.test(client_id) || !/^[ -~]*$/.test(client_secret ?? ''))
      throw new OperatorError(`${method} ${url}: client_id or client_secret has characters that it must not have`)
    // A provider need not repeat these in a response to an update.
    const [uri, access] = [text('registration_client_uri'), text('registration_access_token')]
    const client = {
      client_id,
      ...(uri !== undefined && { registration_client_uri: this.#allowed(uri) }),
      ...(access !== undefined && { registration_access_token: access }),
    }
    const others = Object.entries(body).filter(([name]) => !ofResponse.includes(name))
    return { client, client_secret, metadata: Object.fromEntries(others) }
  }

  /** The token for the registration is sent over https only, or on this machine. */
  #allowed(url: string): string {
    const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
    if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return url
    throw new OperatorError(`${printable(url).slice(0, 200)} is not an https URL`)
  }

  async #json(method: string, url: string, token: string | undefined, body?: Metadata): Promise<Metadata> {
    const headers = {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await this.#outbound
      .fetch(this.#allowed(url), { method, headers, ...content })
      .catch((error: unknown) => {
        throw new OperatorError(reason(error), { cause: error })
      })
    const value: unknown = await response.json().catch(() => undefined)
    if (response.ok && isObject(value)) return value
    const { error, error_description: why } = isObject(value) ? value : {}
    const parts = [error, why].filter((part) => typeof part === 'string').map((part) => printable(part).slice(0, 300))
    const needsToken = token === undefined && (response.status === 401 || response.status === 403)
    const advice = needsToken ? '; if the provider needs an initial access token, give its file with --token' : ''
    throw new OperatorError(
      `${method} ${url} returned ${response.status}${parts.length === 0 ? '' : `: ${parts.join(': ')}`}${advice}`,
    )
  }
}

/** Where clients are registered, by issuer. */
export type Clients = Readonly<Record<string, RegisteredClient>>

const maxStateBytes = 256 * 1024

/**
 * Reads the file that says where the clients of a configuration are registered. None: no file.
 * @throws {OperatorError} when it is unusable; the message quotes none of its content
 */
export function readClients(file: string): Clients {
  const content = readInput(file, maxStateBytes)
  if ('why' in content) {
    if (content.isMissing === true) return {}
    throw new OperatorError(`${file} ${content.why}`)
  }
  const { version, clients } = objectIn(content.bytes.toString('utf8')) ?? {}
  if (version === 1 && isObject(clients)) return clients as Clients
  throw new OperatorError(`${file} is not a file of gatehouse register`)
}

/**
 * Where the configuration says that the client secret is.
 * @param setting the setting of the provider, such as `providers.staff`
 */
export function clientSecretPlace(yaml: string, setting: string): { readonly env: string } | { readonly file: string } {
  const document: unknown = parse(yaml)
  const provider = setting.split('.').reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), document)
  const secret = isObject(provider) ? provider['client_secret'] : undefined
  const { env = 'CLIENT_SECRET', file } = isObject(secret) ? secret : {}
  return typeof file === 'string' ? { file } : { env: String(env) }
}

/** The configuration with another `client_id`, or `undefined` when it is not written there. */
export function withClientId(yaml: string, setting: string, client_id: string): string | undefined {
  const node = parseDocument(yaml).getIn([...setting.split('.'), 'client_id'], true)
  if (!isScalar(node) || !node.range) return undefined
  const [start, end] = node.range
  return `${yaml.slice(0, start)}${JSON.stringify(client_id)}${yaml.slice(end)}`
}
