/** Longer targets, in characters, would make the `state` parameter, which carries them, too long for some providers. */
export const longestReturnTo = 2000
