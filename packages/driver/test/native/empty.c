// A library that loads and has none of the functions looked for.
int shoalTestNothing(void) { return 0; }
