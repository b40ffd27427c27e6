import type { KeyManagementAlgorithm, ProviderConfig } from './model/provider.ts'

/**
 * What a provider may encrypt, as its settings begin: ID Tokens and Logout Tokens, UserInfo
 * (OpenID Connect Dynamic Client Registration 1.0 §2), and authorization responses (JARM §3).
 */
export const encryptedKinds = ['id_token', 'userinfo', 'authorization'] as const
export type EncryptedKind = (typeof encryptedKinds)[number]

export type EncryptionSettings = Partial<Pick<ProviderConfig, `${EncryptedKind}_encrypted_response_${'alg' | 'enc'}`>>

export interface Encryption {
  /** The name of the setting, for messages. */
  readonly setting: string
  /** Absent: it must not be encrypted. */
  readonly alg: KeyManagementAlgorithm | undefined
  readonly enc: string
}

/** How one kind of response is encrypted. */
export function encryptionOf(config: EncryptionSettings, kind: EncryptedKind): Encryption {
  return {
    setting: `${kind}_encrypted_response_alg`,
    alg: config[`${kind}_encrypted_response_alg`],
    enc: config[`${kind}_encrypted_response_enc`] ?? 'A128CBC-HS256',
  }
}

/** The algorithms for which there have to be keys. Empty: the provider encrypts nothing. */
export function decryptionAlgorithms(config: EncryptionSettings): ReadonlySet<KeyManagementAlgorithm> {
  return new Set(encryptedKinds.flatMap((kind) => encryptionOf(config, kind).alg ?? []))
}
