// A room that uses the one below, which is fine.
int low(int x);
int highest(int x) { return low(x - 1); }
