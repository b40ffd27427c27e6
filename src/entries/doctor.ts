/** What packages/doctor uses of the gateway. Nothing else of `src` is for it. */
export { findForm } from '../application-sign-in/html-form.ts'
export { isLoopback } from '../config/addresses.ts'
export { claimsIn, claimsNeeded } from '../config/claims-in-use.ts'
export { describeAssertion, readClientAssertion } from '../config/client-assertion.ts'
export type { Environment, SecretFile } from '../config/document/report.ts'
export { encryptedKinds, encryptionOf } from '../config/encryption.ts'
export {
  type ClaimLength,
  commonHeaderLimitBytes,
  expectedSizes,
  fieldBytes,
  type FieldSizes,
  knownLength,
  longestOf,
  sizeText,
  tokenBytes,
  totalOf,
  usualBytes,
  usualLists,
} from '../config/header-size.ts'
export { proxyFor, proxyText, upstreamAt } from '../config/hosts.ts'
export type { LoadResult } from '../config/load.ts'
export type { GatewayConfig } from '../config/model/gateway.ts'
export type { HeaderConfig } from '../config/model/header.ts'
export type { ProviderConfig, SignalsConfig } from '../config/model/provider.ts'
export { isShared, type RedisStoreConfig } from '../config/model/session.ts'
export type { HealthCheckConfig, TargetConfig, UpstreamConfig, UpstreamTlsConfig } from '../config/model/upstream.ts'
export { harmOfOfflineAccess, lackOfOauth2, offlineAccess, providerKind } from '../config/provider-kind.ts'
export { inSettingsOf } from '../config/provider-setting.ts'
export { originsOf, registrationOf, securityEventsUri } from '../config/registration.ts'
export { targetName } from '../config/target-addresses.ts'
export { portOf } from '../core/addresses.ts'
export { type ClaimPath, type Claims, isWithheld, readClaim } from '../core/claims.ts'
export { connectionAdvice, type ConnectionFailure } from '../core/connection-advice.ts'
export { errorRow } from '../core/error-codes.ts'
export { printable, reason } from '../core/errors.ts'
export { hasDirective } from '../core/header-fields.ts'
export { ownMember } from '../core/json.ts'
export { mcpRevision, toolCall } from '../core/mcp.ts'
export { pauses } from '../core/pauses.ts'
export { AddressText } from '../http/address-text.ts'
export { type DroppedHeader, droppedTexts, headersWithoutValue, identityHeaders } from '../identity/claim-headers.ts'
export { kindOf, type RequestedAccess } from '../provider/authorization-request.ts'
export {
  type ApiFact,
  type ClaimSourceFact,
  examineApis,
  examineClaimSources,
  examineProvider,
  examineTransmitter,
  type ProbeFailure,
  type ProviderFacts,
  type RedirectUriFact,
  type StreamFailure,
  type TransmitterFacts,
} from '../provider/examine.ts'
export { issuerHint } from '../provider/metadata.ts'
export { deliveryMethods, type Stream } from '../provider/stream-client.ts'
export type { TransmitterMetadata } from '../provider/transmitter.ts'
export { checkHealth } from '../proxy/targets/health-check.ts'
export { createResolver, resolveTargets } from '../proxy/targets/resolve.ts'
export { connectTo } from '../proxy/targets/targets.ts'
export { claimsOfSession } from '../session/record/record.ts'
export { redisAdvice } from '../session/store/redis/advice.ts'
export {
  examineRedis,
  type RedisFacts,
  type RedisFailure,
  type RedisServerFacts,
} from '../session/store/redis/examine.ts'
export { httpSchemeMismatch } from '../wire/scheme-mismatch.ts'
