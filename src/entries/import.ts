/**
 * What the importers of packages/import use of the gateway. They are the only other users of these
 * names, so nothing else of `src` is theirs.
 */
export { networkText, parseAddress, parseHttpUrl, parseLooseSubnet, parseSubnet } from '../config/addresses.ts'
export { parseRedisUrl } from '../config/document/redis-urls.ts'
export { loadText } from '../config/load.ts'
export { signingAlgorithms } from '../config/model/provider.ts'
export { placeholder } from '../config/placeholder.ts'
export { harmOfOfflineAccess, offlineAccess, providerKind } from '../config/provider-kind.ts'
export { amountOf, durationText } from '../config/quantities.ts'
export { AddressSet, asciiDomain, isDomainOf } from '../core/addresses.ts'
export { parseClaimPath, readClaim } from '../core/claims.ts'
export { printable } from '../core/errors.ts'
export { isForwardedFact, isRemovableField, isReservedField, withheldReason } from '../core/header-fields.ts'
export { isObject, type JsonObject, ownMember } from '../core/json.ts'
export { LinearPattern } from '../core/linear-pattern.ts'
export { matchesPath, parsePathPattern, type PathPattern } from '../core/patterns.ts'
export { outcomesOf } from '../explain/embedded-tests.ts'
