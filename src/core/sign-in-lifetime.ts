/** The longest time that a sign-in may take, in ms. A tombstone is kept for twice this time. */
export const signInLifetimeMs = 15 * 60 * 1000
