/**
 * The versions of Node.js that CI runs. With any other one, the gateway uses no private part of
 * Node.js (docs/decisions/0016-private-parts-have-a-fallback.md).
 */
const testedMajors = [22, 24, 26] as const

const { node } = process.versions
let whyLeftOut = testedMajors.some((major) => node.startsWith(`${major}.`))
  ? undefined
  : `this release was not tested with Node.js ${node}, but with ${testedMajors.join(', ')}`

/** Why this process uses no private part of Node.js; `undefined` when it uses them. */
export function privatePartsLeftOut(): string | undefined {
  return whyLeftOut
}

/** From now on, this process uses no private part of Node.js. */
export function leaveOutPrivateParts(why: string): void {
  whyLeftOut ??= why
}
