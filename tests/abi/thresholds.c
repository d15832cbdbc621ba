/* thresholds.c - answers lines of "map TAB model TAB provider" with the threshold, to be compared with the Rust resolver. */
#include "hermes_engine.h"
#include <stdio.h>

int main(void) {
  static char line[1 << 16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    char *model, *provider;
    line[strcspn(line, "\n")] = 0;
    model = strchr(line, '\t');
    if (model == NULL) return 2;
    *model++ = 0;
    provider = strchr(model, '\t');
    if (provider == NULL) return 2;
    *provider++ = 0;
    printf("%.17g\n", hermes_resolve_model_threshold(hermes_bytes_of(line), hermes_bytes_of(model), hermes_bytes_of(provider)));
  }
  return 0;
}
