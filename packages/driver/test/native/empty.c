// A library that loads but has none of the required functions.
int shoalTestNothing(void) { return 0; }
