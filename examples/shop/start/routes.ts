import router from '@adonisjs/core/services/router'

const OrdersController = () => import('#controllers/orders_controller')
const ApprovalsController = () => import('#controllers/approvals_controller')
const ReportsController = () => import('#controllers/reports_controller')

router.post('/orders', [OrdersController, 'store'])
router.get('/orders/:id', [OrdersController, 'show'])
router.post('/orders/:id/approval', [ApprovalsController, 'store'])
router.get('/report', [ReportsController, 'index'])
