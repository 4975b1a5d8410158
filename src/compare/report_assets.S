/* The page's template and what goes into it, as bytes of the program, each followed by a NUL. The
 * paths come from the Makefile. */
    .section .rodata

    .macro asset name, path
    .global \name
    .type \name, @object
\name:
    .incbin "\path"
    .byte 0
    .size \name, . - \name
    .endm

    asset ls_report_template, LS_REPORT_TEMPLATE
    asset ls_report_style, LS_REPORT_STYLE
    asset ls_report_script, LS_REPORT_SCRIPT
    asset ls_report_chart, LS_REPORT_CHART

    .section .note.GNU-stack, "", @progbits
