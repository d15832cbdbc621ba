/* layout.c - prints the shape of every struct and the value of every constant of the border as a C compiler sees them, in the form
 * of v1.layout: "struct size align", "  field offset size", "NAME value". */
#include "hermes_engine.h"
#include <inttypes.h>
#include <stdio.h>

#define ALIGN_OF(type) offsetof(struct { char c; type t; }, t)
#define STRUCT(type) printf(#type " %zu %zu\n", sizeof(hermes_##type), ALIGN_OF(hermes_##type));
#define FIELD(type, field) printf("  " #field " %zu %zu\n", offsetof(hermes_##type, field), sizeof(((hermes_##type *)0)->field));
#define CONSTANT(name) printf(#name " %" PRId64 "\n", (int64_t)HERMES_##name);

int main(void) {
#include "border.list"
  return 0;
}
