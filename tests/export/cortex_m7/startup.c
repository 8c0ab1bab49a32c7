/* From reset to main on a Cortex-M7 under an emulator, which prints for it. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint8_t data_image[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern void initialise_monitor_handles(void);
extern int main(void);
void reset(void);
void fault(void);
void _init(void);
void _fini(void);

void _init(void) {}
void _fini(void) {}

void fault(void) { abort(); }

void reset(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xFU << 20; /* the floating-point unit is off at reset */
  __asm volatile("dsb\n isb");
  memcpy(data_start, data_image, (size_t)(data_end - data_start));
  memset(bss_start, 0, (size_t)(bss_end - bss_start));
  initialise_monitor_handles();
  exit(main());
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {
    stack_top, reset, fault, fault, fault, fault, fault};
