// Whether Enter only ends a composition, as of Chinese characters. Safari ends it first: its key code then is 229.
const ENDS_COMPOSITION = 229;

export const isComposing = (event) => event.isComposing || event.keyCode === ENDS_COMPOSITION;
