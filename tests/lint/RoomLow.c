// A room below that uses a function of the room above: the lint rooms finds it.
int highest(int x);
int low(int x) { return x > 0 ? highest(x) : x; }
