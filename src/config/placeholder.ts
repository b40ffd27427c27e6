/** `gatehouse import` writes it for what it cannot know, and `gatehouse check` warns of it. */
export const placeholder = 'change-me'
