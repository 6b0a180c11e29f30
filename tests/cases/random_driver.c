/* The driver API, linked. */
#define ROUTE_NAME "driver"
#define CU(export) export
#include "random_driver.h"
